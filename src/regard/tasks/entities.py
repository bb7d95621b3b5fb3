"""Where the marks of two entities stand among the pieces of a sentence, and what of a long one is read.

A sentence is cut at the marks before it becomes pieces, so that no piece crosses the border of an entity, as
many would where words have no spaces between them.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from regard.text.marked import MARKS, Marked
from regard.text.tokenizer import Encoded


class Piece(NamedTuple):
    id: int
    word: str
    """What it stands for."""


class Placed(NamedTuple):
    """A sentence with its marks, ready to be framed."""

    ids: list[int]
    words: list[str]
    """What each of them stands for."""
    cut: bool
    """It was too long; what is far from the entities was left out."""


def placed(marked: Marked, encode: Callable[[str], Encoded], first_mark: int, most: int) -> Placed:
    """`most` pieces, marks among them."""
    parts = [_pieces(text, encode) for text in _parts(marked)]
    kept = _near(parts, most - len(MARKS))
    marks = [0, 1, 2, 3] if marked.first <= marked.second else [2, 3, 0, 1]
    ids: list[int] = []
    words: list[str] = []
    for number, part in enumerate(kept):
        ids += [piece.id for piece in part]
        words += [piece.word for piece in part]
        if number < len(marks):
            ids.append(first_mark + marks[number])
            words.append(MARKS[marks[number]])
    return Placed(ids, words, cut=sum(map(len, kept)) < sum(map(len, parts)))


def _parts(marked: Marked) -> list[str]:
    """What stands before, in, between, in and after the entities."""
    first, second = sorted((marked.first, marked.second))
    return [marked.text[begin:end] for begin, end in pairwise((0, *first, *second, len(marked.text)))]


def _pieces(text: str, encode: Callable[[str], Encoded]) -> list[Piece]:
    if not text.strip():
        return []
    ids, offsets = encode(text)
    return [Piece(id_, text[begin:end]) for id_, (begin, end) in zip(ids, offsets, strict=True)]


def _near(parts: Sequence[list[Piece]], room: int) -> list[list[Piece]]:
    """As many pieces as there is room for: the entities first, then what is between, then what is around."""
    before, one, between, other, after = parts
    one, other = one[: room // 2], other[: room // 2]
    room -= len(one) + len(other)
    if len(between) > room:
        between = between[: room - room // 2] + between[len(between) - room // 2 :]
    room -= len(between)
    n_before = min(len(before), max(room // 2, room - len(after)))
    return [before[len(before) - n_before :], one, between, other, after[: room - n_before]]
