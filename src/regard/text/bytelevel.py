"""The vocabulary of a GPT-2: bytes, and the merges that make tokens of them (Radford et al. 2019).

As with a BERT's (wordpiece.py), the file is read, checked, and a new tokenizer is built from it. Tokens and
merges are taken as they are; the text must be cut before them as GPT-2 does it. A text that spells
`<|endoftext|>` stays text: it is cut at its punctuation, and no merge crosses a cut.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tokenizers as hf
from tokenizers import decoders, models, pre_tokenizers

from regard.errors import CheckpointError
from regard.text.tokenizer_files import added_tokens, checked_vocabulary, read_object, read_text

END = "<|endoftext|>"
_PLAIN = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_OTHERS = (byte for byte in range(256) if byte not in _PLAIN)
LETTERS = {chr(byte): byte for byte in _PLAIN} | {chr(256 + n): byte for n, byte in enumerate(_OTHERS)}
"""The printable letter of each byte: a space is Ġ, a line end Ċ."""
FLAGS: dict[str, tuple[object, ...]] = {
    "dropout": (None, 0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (None, False),
    "ignore_merges": (None, False),
}
"""Other settings of a BPE model in tokenizer.json, with the values that a GPT-2 has."""
Merges = list[tuple[str, str]]


def spelling(token: str) -> str:
    """The text that a token adds; a byte of a longer character as Python's `surrogateescape` has it."""
    return bytes(LETTERS[letter] for letter in token).decode("utf-8", "surrogateescape")


def legible(spelt: str) -> str:
    """The spelling with incomplete bytes written as `<0xE4>`."""
    return "".join(f"<0x{ord(c) - 0xDC00:02X}>" if "\udc80" <= c <= "\udcff" else c for c in spelt)


def gpt2_tokenizer(vocabulary: dict[str, int], merges: Merges) -> hf.Tokenizer:
    """Build a GPT-2 tokenizer from a vocabulary and merges, as other tools do."""
    tokenizer = hf.Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def is_gpt2(inner: hf.Tokenizer) -> bool:
    """True if a tokenizer cuts texts as GPT-2 does and can spell every text."""
    cut = inner.pre_tokenizer
    return (
        isinstance(inner.model, models.BPE)
        and isinstance(cut, pre_tokenizers.ByteLevel)
        and (cut.add_prefix_space, cut.use_regex, inner.normalizer) == (False, True, None)
        and None not in map(inner.token_to_id, (END, *LETTERS))
    )


def read_bytelevel(folder: Path) -> hf.Tokenizer:
    """Read tokenizer.json, or else vocab.json and merges.txt."""
    _refuse_additions(folder / "tokenizer_config.json")
    path, vocabulary = folder / "tokenizer.json", folder / "vocab.json"
    if path.is_file():
        return from_json(path, read_object(path))
    if vocabulary.is_file():
        lines = read_text(folder / "merges.txt").splitlines()
        lines = lines[1:] if lines and lines[0].startswith("#version") else lines
        merges = _merges(folder / "merges.txt", (line for line in lines if line))
        return _checked(vocabulary, checked_vocabulary(vocabulary, read_object(vocabulary)), merges)
    raise CheckpointError(f"{path}: missing, and there is no vocab.json; is the folder complete?")


def _refuse_additions(path: Path) -> None:
    settings = read_object(path) if path.is_file() else {}
    for name in ("add_prefix_space", "add_bos_token"):
        if settings.get(name):
            raise CheckpointError(
                f"{path}: {name} is {settings[name]!r}, but a GPT-2 adds nothing to a text; set it to false"
            )


def from_json(path: Path, content: dict[str, Any]) -> hf.Tokenizer:
    """Rebuild a GPT-2 tokenizer from the content of a tokenizer.json."""
    model, cut, cleaned = (content.get(part) for part in ("model", "pre_tokenizer", "normalizer"))
    for part, value, wanted in (("model", model, "BPE"), ("pre_tokenizer", cut, "ByteLevel")):
        kind = value.get("type") if isinstance(value, dict) else value
        if not isinstance(value, dict) or kind != wanted:
            raise CheckpointError(f"{path}: its {part} is {kind!r}, but a GPT-2 has {wanted!r}")
    assert isinstance(model, dict)
    assert isinstance(cut, dict)
    if cleaned is not None or (cut.get("add_prefix_space"), cut.get("use_regex", True)) != (False, True):
        raise CheckpointError(f"{path}: it normalizes texts or cuts them in another way than a GPT-2")
    for name, usual in FLAGS.items():
        if model.get(name) not in usual:
            raise CheckpointError(f"{path}: {name} is {model[name]!r}, but a GPT-2 does not use it")
    vocabulary = checked_vocabulary(path, model.get("vocab"))
    for name, id_ in added_tokens(path, content):
        if name != END or id_ != vocabulary.setdefault(END, len(vocabulary)):
            raise CheckpointError(
                f"{path}: added_tokens has {name!r}; only {END} with its id in the vocabulary may be there"
            )
    if not isinstance(model.get("merges"), list):
        raise CheckpointError(f"{path}: its merges are not a list of pairs of tokens")
    return _checked(path, vocabulary, _merges(path, model["merges"]))


def _merges(path: Path, entries: Iterable[Any]) -> Merges:
    """Read merges: pairs, or lines with a space between the two."""
    merges: Merges = []
    for number, merge in enumerate(entries, 1):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        match pair:
            case [str(left), str(right)] if left and right:
                merges.append((left, right))
            case _:
                raise CheckpointError(f"{path}: merge {number} is {merge!r}, not a pair of tokens")
    if len(set(merges)) < len(merges):
        raise CheckpointError(f"{path}: lists a merge twice; is it damaged?")
    return merges


def _checked(path: Path, vocabulary: dict[str, int], merges: Sequence[tuple[str, str]]) -> hf.Tokenizer:
    if missing := [token for token in (END, *LETTERS) if token not in vocabulary]:
        raise CheckpointError(f"{path}: the vocabulary lacks {missing[0]!r}, which a GPT-2 needs")
    if odd := [token for token in vocabulary if not token or not set(token) <= LETTERS.keys()]:
        raise CheckpointError(f"{path}: the token {odd[0]!r} is not spelt in the byte letters of GPT-2")
    for left, right in merges:
        if not {left, right, left + right} <= vocabulary.keys():
            raise CheckpointError(
                f"{path}: merges {left!r} and {right!r}, but they or their "
                "merged token are missing in the vocabulary"
            )
    return gpt2_tokenizer(vocabulary, list(merges))
