"""The vocabulary of a GPT-2: bytes, and the merges that make pieces of them (Radford et al. 2019).

As a BERT's (wordpiece.py) it is taken apart, looked at, and put together anew. Pieces and merges are
believed; how a text is cut before them must be GPT-2's own way. A text that spells `<|endoftext|>` is a text:
it is cut at its signs, and no merge goes across a cut.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tokenizers as hf
from tokenizers import decoders, models, pre_tokenizers

from regard.errors import CheckpointError
from regard.text.foreign import added, numbered, read_object, read_text

END = "<|endoftext|>"
_PLAIN = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_OTHERS = (byte for byte in range(256) if byte not in _PLAIN)
LETTERS = {chr(byte): byte for byte in _PLAIN} | {chr(256 + n): byte for n, byte in enumerate(_OTHERS)}
"""Each byte has a letter that can be printed: a space is Ġ, a line end Ċ."""
FLAGS: dict[str, tuple[object, ...]] = {
    "dropout": (None, 0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (None, False),
    "ignore_merges": (None, False),
}
"""What else a BPE of tokenizer.json may have, and what a GPT-2's has there."""
Merges = list[tuple[str, str]]


def spelling(piece: str) -> str:
    """What a piece adds to a text; a byte of a longer character as Python writes it in `surrogateescape`."""
    return bytes(LETTERS[letter] for letter in piece).decode("utf-8", "surrogateescape")


def legible(spelt: str) -> str:
    """With such bytes as `<0xE4>`."""
    return "".join(f"<0x{ord(c) - 0xDC00:02X}>" if "\udc80" <= c <= "\udcff" else c for c in spelt)


def assembled(vocabulary: dict[str, int], merges: Merges) -> hf.Tokenizer:
    """A GPT-2's tokenizer, as every tool makes it of pieces and merges."""
    made = hf.Tokenizer(models.BPE(vocabulary, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def is_assembled(inner: hf.Tokenizer) -> bool:
    """Whether it cuts texts so, and can spell every one."""
    cut = inner.pre_tokenizer
    return (
        isinstance(inner.model, models.BPE)
        and isinstance(cut, pre_tokenizers.ByteLevel)
        and (cut.add_prefix_space, cut.use_regex, inner.normalizer) == (False, True, None)
        and None not in map(inner.token_to_id, (END, *LETTERS))
    )


def read_bytelevel(folder: Path) -> hf.Tokenizer:
    """Of tokenizer.json, or else of vocab.json and merges.txt."""
    _refuse_additions(folder / "tokenizer_config.json")
    path, pieces = folder / "tokenizer.json", folder / "vocab.json"
    if path.is_file():
        return rebuilt(path, read_object(path))
    if pieces.is_file():
        lines = read_text(folder / "merges.txt").splitlines()
        lines = lines[1:] if lines and lines[0].startswith("#version") else lines
        merges = _merges(folder / "merges.txt", (line for line in lines if line))
        return _checked(pieces, numbered(pieces, read_object(pieces)), merges)
    raise CheckpointError(f"{path}: missing, and there is no vocab.json; is the folder complete?")


def _refuse_additions(path: Path) -> None:
    told = read_object(path) if path.is_file() else {}
    for name in ("add_prefix_space", "add_bos_token"):
        if told.get(name):
            raise CheckpointError(f"{path}: {name} is {told[name]!r}, a GPT-2 adds nothing to a text")


def rebuilt(path: Path, content: dict[str, Any]) -> hf.Tokenizer:
    """Of what a tokenizer.json holds."""
    model, cut, cleaned = (content.get(part) for part in ("model", "pre_tokenizer", "normalizer"))
    for part, found, wanted in (("model", model, "BPE"), ("pre_tokenizer", cut, "ByteLevel")):
        kind = found.get("type") if isinstance(found, dict) else found
        if not isinstance(found, dict) or kind != wanted:
            raise CheckpointError(f"{path}: its {part} is {kind!r}, that of a GPT-2 is {wanted!r}")
    assert isinstance(model, dict)
    assert isinstance(cut, dict)
    if cleaned is not None or (cut.get("add_prefix_space"), cut.get("use_regex", True)) != (False, True):
        raise CheckpointError(f"{path}: it does not cut texts as a GPT-2 does, which changes nothing in them")
    for name, usual in FLAGS.items():
        if model.get(name) not in usual:
            raise CheckpointError(f"{path}: {name} is {model[name]!r}, a GPT-2 has none")
    vocabulary = numbered(path, model.get("vocab"))
    for name, place in added(path, content):
        if name != END or place != vocabulary.setdefault(END, len(vocabulary)):
            raise CheckpointError(f"{path}: adds {name!r} to the vocabulary, which regard cannot")
    if not isinstance(model.get("merges"), list):
        raise CheckpointError(f"{path}: its merges are not a list of two pieces each")
    return _checked(path, vocabulary, _merges(path, model["merges"]))


def _merges(path: Path, given: Iterable[Any]) -> Merges:
    """Pairs, or lines with a space between the two."""
    found: Merges = []
    for number, merge in enumerate(given, 1):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        match pair:
            case [str(left), str(right)] if left and right:
                found.append((left, right))
            case _:
                raise CheckpointError(f"{path}: merge {number} is {merge!r}, it should be two pieces")
    if len(set(found)) < len(found):
        raise CheckpointError(f"{path}: the same two pieces are merged twice; is it damaged?")
    return found


def _checked(path: Path, vocabulary: dict[str, int], merges: Sequence[tuple[str, str]]) -> hf.Tokenizer:
    if missing := [piece for piece in (END, *LETTERS) if piece not in vocabulary]:
        raise CheckpointError(f"{path}: the vocabulary lacks {missing[0]!r}, which a GPT-2 needs")
    if odd := [piece for piece in vocabulary if not piece or not set(piece) <= LETTERS.keys()]:
        raise CheckpointError(f"{path}: the piece {odd[0]!r} is not spelt in the letters of bytes")
    for left, right in merges:
        if not {left, right, left + right} <= vocabulary.keys():
            raise CheckpointError(
                f"{path}: {left!r} and {right!r} are merged, but not all three are pieces of the vocabulary"
            )
    return assembled(vocabulary, list(merges))
