"""Errors of transcripts, by words and by characters, as jiwer aligns them; it comes with `regard[audio]`.

Case and punctuation do not count: they are not heard.
"""

import unicodedata
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any, Literal, NamedTuple

from regard.errors import DataError

INNER = frozenset("'’-")
"""Punctuation that stays within a word."""
Edit = Literal["equal", "substitute", "delete", "insert"]


class Errors(NamedTuple):
    """Errors of one transcript."""

    substituted: int
    deleted: int
    inserted: int
    n: int
    """Words, or characters, of the reference."""

    @property
    def total(self) -> int:
        return self.substituted + self.deleted + self.inserted


def heard(text: str) -> str:
    """Reduce a text to what can be heard: without case, and without punctuation but within words."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(one if one in INNER or unicodedata.category(one)[0] not in "PS" else " " for one in folded)
    return " ".join(stripped for word in kept.split() if (stripped := word.strip("'’-")))


def word_errors(transcript: str, reference: str) -> Errors:
    return _errors(heard(transcript).split(), heard(reference).split())


def character_errors(transcript: str, reference: str) -> Errors:
    """Between words counts one space."""
    return _errors(list(heard(transcript)), list(heard(reference)))


def aligned(transcript: str, reference: str) -> list[tuple[Edit, int, int]]:
    """Edits that make the transcript of the reference: each with its place in the reference and in it."""
    words, right = heard(transcript).split(), heard(reference).split()
    return _aligned(words, right)


def _errors(found: Sequence[str], right: Sequence[str]) -> Errors:
    edits = [kind for kind, _, _ in _aligned(found, right)]
    return Errors(edits.count("substitute"), edits.count("delete"), edits.count("insert"), len(right))


def _aligned(found: Sequence[str], right: Sequence[str]) -> list[tuple[Edit, int, int]]:
    if not right or not found:  # jiwer refuses empty references
        return [
            *(("insert", 0, at) for at in range(len(found))),
            *(("delete", at, 0) for at in range(len(right))),
        ]
    parts: Any = _jiwer().process_words([" ".join(map(_whole, right))], [" ".join(map(_whole, found))])
    edits: list[tuple[Edit, int, int]] = []
    for part in parts.alignments[0]:
        n = max(part.ref_end_idx - part.ref_start_idx, part.hyp_end_idx - part.hyp_start_idx)
        edits += [(part.type, part.ref_start_idx + at, part.hyp_start_idx + at) for at in range(n)]
    return edits


def _whole(word: str) -> str:
    """A character that jiwer does not take for the border of words."""
    return "␣" if word == " " else word


@cache
def _jiwer() -> ModuleType:
    try:
        import jiwer
    except ImportError:
        raise DataError("word error rates need jiwer; install it with: pip install 'regard[audio]'") from None
    return jiwer
