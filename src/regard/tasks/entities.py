"""Where the marks of two entities stand among the pieces of a sentence, and what of a long one is read."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from regard.data.marked import MARKS, Marked
from regard.data.tokenizer import Encoded


class Placed(NamedTuple):
    """A sentence with its marks, ready to be framed."""

    ids: list[int]
    words: list[str]
    """What each of them stands for."""
    cut: bool
    """It was too long; what is far from the entities was left out."""


def placed(marked: Marked, encoded: Encoded, first_mark: int, most: int) -> Placed:
    """`most` pieces, marks among them; a piece that an entity shares with its neighbour is the entity's."""
    parts = _parts(marked, encoded)
    kept = _near(parts, most - len(MARKS))
    marks = [0, 1, 2, 3] if marked.first <= marked.second else [2, 3, 0, 1]
    ids: list[int] = []
    words: list[str] = []
    for number, part in enumerate(kept):
        ids += [encoded.ids[piece] for piece in part]
        words += [marked.text[slice(*encoded.offsets[piece])] for piece in part]
        if number < len(marks):
            ids.append(first_mark + marks[number])
            words.append(MARKS[marks[number]])
    return Placed(ids, words, cut=sum(map(len, kept)) < len(encoded.ids))


def _parts(marked: Marked, encoded: Encoded) -> list[range]:
    """The pieces before, in, between, in and after the entities."""
    starts = [start for start, _ in encoded.offsets]
    ends = [end for _, end in encoded.offsets]
    cuts = [0]
    for begin, end in sorted((marked.first, marked.second)):
        cuts.append(max(cuts[-1], bisect_right(ends, begin)))
        cuts.append(max(cuts[-1], bisect_left(starts, end)))
    return [range(*pair) for pair in pairwise((*cuts, len(encoded.ids)))]


def _near(parts: Sequence[range], room: int) -> list[list[int]]:
    """As many pieces as there is room for: the entities first, then what is between, then what is around."""
    before, one, between, other, after = map(list, parts)
    one, other = one[: room // 2], other[: room // 2]
    room -= len(one) + len(other)
    if len(between) > room:
        between = between[: room - room // 2] + between[len(between) - room // 2 :]
    room -= len(between)
    n_before = min(len(before), max(room // 2, room - len(after)))
    return [before[len(before) - n_before :], one, between, other, after[: room - n_before]]
