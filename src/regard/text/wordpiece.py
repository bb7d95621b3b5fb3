"""The vocabulary of a BERT: one that was trained elsewhere is taken apart, looked at, and put together anew.

Only the pieces and four settings are believed, so that nothing a foreign tokenizer.json may hold (patterns,
added tokens, scripts of steps) ever runs. One thing then differs, as everywhere in regard: a text that spells
`[SEP]` is a text and no mark.
"""

from pathlib import Path
from typing import Any

import tokenizers as hf
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from regard.errors import CheckpointError
from regard.text.foreign import added, numbered, read_object, read_text

PAD, UNKNOWN, BEGIN, END, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
NEEDED = (PAD, UNKNOWN, BEGIN, END)
PARTS = {"model": "WordPiece", "normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
CLEANING = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
"""What BertNormalizer does unless told; no accents are stripped where case is kept."""
LONGEST_WORD, LONGEST_READ = 100, 1000
"""Characters; a longer word is unknown. A foreign vocabulary may say otherwise, up to the second: to cut a
word takes the cube of its length, for 10,000 characters a minute.
"""


def read_wordpiece(folder: Path) -> hf.Tokenizer:
    """Of tokenizer.json, or else of vocab.txt."""
    path = folder / "tokenizer.json"
    if path.is_file():
        return rebuilt(path, read_object(path))
    if (folder / "vocab.txt").is_file():
        return _from_list(folder / "vocab.txt")
    raise CheckpointError(f"{path}: missing, and there is no vocab.txt; is the folder complete?")


def rebuilt(path: Path, content: dict[str, Any]) -> hf.Tokenizer:
    """Of what a tokenizer.json holds."""
    for part, wanted in PARTS.items():
        found = content.get(part)
        kind = found.get("type") if isinstance(found, dict) else found
        if not isinstance(found, dict) or kind != wanted:
            raise CheckpointError(f"{path}: its {part} is {kind!r}, that of a BERT is {wanted!r}")
    model = content["model"]
    vocabulary = _checked(path, model.get("vocab"))
    if (model.get("unk_token"), model.get("continuing_subword_prefix")) != (UNKNOWN, "##"):
        raise CheckpointError(f"{path}: unknown words and continuations are not marked as a BERT's are")
    known = {*NEEDED, MASK}
    for name, place in added(path, content):
        if name not in known or vocabulary.get(name) != place:
            raise CheckpointError(f"{path}: adds {name!r} to the vocabulary, which regard cannot")
    longest = model.get("max_input_chars_per_word", LONGEST_WORD)
    if type(longest) is not int or not 0 < longest <= LONGEST_READ:
        raise CheckpointError(f"{path}: max_input_chars_per_word is {longest!r}, it should be {LONGEST_WORD}")
    cleaning = {name: content["normalizer"].get(name, usual) for name, usual in CLEANING.items()}
    return _assembled(path, vocabulary, cleaning, longest)


def _from_list(path: Path) -> hf.Tokenizer:
    """A piece a line; how text is cleaned stands in tokenizer_config.json, if anywhere."""
    pieces = read_text(path).split("\n")
    names = [piece.removesuffix("\r") for piece in (pieces[:-1] if pieces[-1] == "" else pieces)]
    beside = path.with_name("tokenizer_config.json")
    told = read_object(beside) if beside.is_file() else {}
    cleaning = CLEANING | {
        "lowercase": told.get("do_lower_case", True),
        "strip_accents": told.get("strip_accents"),
        "handle_chinese_chars": told.get("tokenize_chinese_chars", True),
    }
    vocabulary = _checked(path, {name: place for place, name in enumerate(names)})
    return _assembled(path, vocabulary, cleaning, LONGEST_WORD)


def _assembled(
    path: Path, vocabulary: dict[str, int], cleaning: dict[str, Any], longest: int
) -> hf.Tokenizer:
    for name, value in cleaning.items():
        if not (isinstance(value, bool) or (value is None and name == "strip_accents")):
            raise CheckpointError(f"{path}: {name} is {value!r}, it should be true or false")
    return assembled(vocabulary, cleaning, longest)


def assembled(
    vocabulary: dict[str, int], cleaning: dict[str, Any], longest: int = LONGEST_WORD
) -> hf.Tokenizer:
    """A BERT's tokenizer, as every tool makes it of pieces and these settings."""
    made = hf.Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN, max_input_chars_per_word=longest))
    made.normalizer = normalizers.BertNormalizer(**cleaning)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece(prefix="##")
    made.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A {END}",
        pair=f"{BEGIN} $A {END} $B:1 {END}:1",
        special_tokens=[(mark, vocabulary[mark]) for mark in (BEGIN, END)],
    )
    return made


def _checked(path: Path, vocabulary: Any) -> dict[str, int]:
    found = numbered(path, vocabulary)
    if missing := [mark for mark in NEEDED if mark not in found]:
        raise CheckpointError(f"{path}: the vocabulary lacks {missing[0]}, which a BERT needs")
    if not found.keys() - {*NEEDED, MASK}:
        raise CheckpointError(f"{path}: the vocabulary has no piece beside its marks; is it truncated?")
    return found
