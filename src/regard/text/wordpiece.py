"""The vocabulary of a BERT that was trained elsewhere: read, checked, and built anew.

Only its tokens and four settings are taken over, so that nothing else in a foreign tokenizer.json (patterns,
added tokens, sequences of steps) ever runs. One thing then differs, as everywhere in regard: a text that
spells `[SEP]` stays text and is no special token.
"""

from pathlib import Path
from typing import Any

import tokenizers as hf
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from regard.errors import CheckpointError
from regard.text.tokenizer_files import added_tokens, checked_vocabulary, read_object, read_text

PAD, UNKNOWN, BEGIN, END, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
NEEDED = (PAD, UNKNOWN, BEGIN, END)
PARTS = {"model": "WordPiece", "normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
CLEANING = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
"""Defaults of BertNormalizer; accents are kept where case is kept."""
LONGEST_WORD, LONGEST_READ = 100, 1000
"""Longest word in characters: longer ones are unknown. A foreign vocabulary may set up to the second value:
cutting a word takes time cubic in its length, a minute for 10,000 characters.
"""


def read_wordpiece(folder: Path) -> hf.Tokenizer:
    """Read tokenizer.json, or else vocab.txt."""
    path = folder / "tokenizer.json"
    if path.is_file():
        return from_json(path, read_object(path))
    if (folder / "vocab.txt").is_file():
        return _from_list(folder / "vocab.txt")
    raise CheckpointError(f"{path}: missing, and there is no vocab.txt; is the folder complete?")


def from_json(path: Path, content: dict[str, Any]) -> hf.Tokenizer:
    """Rebuild a BERT tokenizer from the content of a tokenizer.json."""
    for part, wanted in PARTS.items():
        value = content.get(part)
        kind = value.get("type") if isinstance(value, dict) else value
        if not isinstance(value, dict) or kind != wanted:
            raise CheckpointError(f"{path}: its {part} is {kind!r}, but a BERT has {wanted!r}")
    model = content["model"]
    vocabulary = _checked(path, model.get("vocab"))
    if (model.get("unk_token"), model.get("continuing_subword_prefix")) != (UNKNOWN, "##"):
        raise CheckpointError(
            f"{path}: unk_token and continuing_subword_prefix are not [UNK] and ## as in a BERT"
        )
    special = {*NEEDED, MASK}
    for name, id_ in added_tokens(path, content):
        if name not in special or vocabulary.get(name) != id_:
            raise CheckpointError(
                f"{path}: added_tokens has {name!r}; only a BERT's special "
                "tokens with their ids in the vocabulary may be there"
            )
    longest = model.get("max_input_chars_per_word", LONGEST_WORD)
    if type(longest) is not int or not 0 < longest <= LONGEST_READ:
        raise CheckpointError(
            f"{path}: max_input_chars_per_word is {longest!r}, but regard reads 1 to {LONGEST_READ:,}"
        )
    cleaning = {name: content["normalizer"].get(name, usual) for name, usual in CLEANING.items()}
    return _checked_tokenizer(path, vocabulary, cleaning, longest)


def _from_list(path: Path) -> hf.Tokenizer:
    """Read a list with a token a line; tokenizer_config.json, where there is one, says how text
    is cleaned.
    """
    lines = read_text(path).split("\n")
    names = [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
    beside = path.with_name("tokenizer_config.json")
    settings = read_object(beside) if beside.is_file() else {}
    cleaning = CLEANING | {
        "lowercase": settings.get("do_lower_case", True),
        "strip_accents": settings.get("strip_accents"),
        "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
    }
    vocabulary = _checked(path, {name: id_ for id_, name in enumerate(names)})
    return _checked_tokenizer(path, vocabulary, cleaning, LONGEST_WORD)


def _checked_tokenizer(
    path: Path, vocabulary: dict[str, int], cleaning: dict[str, Any], longest: int
) -> hf.Tokenizer:
    for name, value in cleaning.items():
        if not (isinstance(value, bool) or (value is None and name == "strip_accents")):
            raise CheckpointError(f"{path}: {name} is {value!r}, but it must be true or false")
    return bert_tokenizer(vocabulary, cleaning, longest)


def bert_tokenizer(
    vocabulary: dict[str, int], cleaning: dict[str, Any], longest: int = LONGEST_WORD
) -> hf.Tokenizer:
    """Build a BERT tokenizer from a vocabulary and these settings, as other tools do."""
    tokenizer = hf.Tokenizer(
        models.WordPiece(vocabulary, unk_token=UNKNOWN, max_input_chars_per_word=longest)
    )
    tokenizer.normalizer = normalizers.BertNormalizer(**cleaning)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A {END}",
        pair=f"{BEGIN} $A {END} $B:1 {END}:1",
        special_tokens=[(mark, vocabulary[mark]) for mark in (BEGIN, END)],
    )
    return tokenizer


def _checked(path: Path, vocabulary: Any) -> dict[str, int]:
    tokens = checked_vocabulary(path, vocabulary)
    if missing := [mark for mark in NEEDED if mark not in tokens]:
        raise CheckpointError(f"{path}: the vocabulary lacks {missing[0]}, which a BERT needs")
    if not tokens.keys() - {*NEEDED, MASK}:
        raise CheckpointError(f"{path}: the vocabulary has only special tokens; is it truncated?")
    return tokens
