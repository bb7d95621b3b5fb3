"""A sentence longer than a model reads at once: overlapping windows, each word answered where it stands best.

A window begins and ends between words. The next begins half a window further, so that every word but those at
the ends of the sentence has something before and after it in one window or the other.
"""

from typing import NamedTuple

import numpy as np

from regard.data.cache import Ints


class Windows(NamedTuple):
    spans: list[tuple[int, int]]
    """Pieces from … up to …, of each window."""
    owner: Ints
    """The window that answers for each word."""


def windows(n_pieces: Ints, most: int) -> Windows:
    """Of a sentence whose words have so many pieces each, none more than half of `most`.

    One without words has one window, with nothing in it.
    """
    if not len(n_pieces):
        return Windows([(0, 0)], np.zeros(0, np.int64))
    ends = np.cumsum(n_pieces)
    starts = ends - n_pieces
    total = int(ends[-1])
    spans = [(0, int(ends[ends <= most][-1]))]
    while spans[-1][1] < total:
        begin = int(starts[starts >= spans[-1][0] + (most + 1) // 2][0])
        spans.append((begin, int(ends[ends <= begin + most][-1])))
    return Windows(spans, np.stack([_depths(starts, ends, span, total) for span in spans]).argmax(0))


def _depths(starts: Ints, ends: Ints, span: tuple[int, int], total: int) -> Ints:
    """How many pieces stand around each word in a window, on the poorer side; −1 for words outside.

    The ends of the sentence are no edges: beyond them there is nothing to miss.
    """
    begin, end = span
    before = starts - begin if begin else np.full_like(starts, total)
    after = end - ends if end < total else np.full_like(ends, total)
    return np.maximum(np.minimum(before, after), -1)
