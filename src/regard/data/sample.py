"""Fair samples of streams that are too large to hold."""

import random
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

ENOUGH = 1_000_000
"""Most rows that a vocabulary is learnt from; more would not change it."""


def sampled(items: Iterable[T], most: int = ENOUGH) -> list[T]:
    """All items in order, or `most` drawn with equal chances; the same ones every time.

    A reservoir: the n-th item enters with a chance of most/n and replaces any other.
    """
    rng = random.Random(0)
    kept: list[T] = []
    for seen, item in enumerate(items, 1):
        if seen <= most:
            kept.append(item)
        elif (place := int(rng.random() * seen)) < most:
            kept[place] = item
    return kept


def thinned(items: Iterable[T], most: int, size: Callable[[T], int]) -> tuple[list[T], int]:
    """All items in order, or one drawn from every 2, 4, 8 … neighbours; and how many there were.

    The total size is at most `most`, unless a single item is larger. The sample is spread over the whole
    stream, and the same every time.
    """
    rng = random.Random(0)
    kept: list[T] = []
    n_seen, room, of_each = 0, most, 1
    drawn: list[T] = []
    n_drawn_from = 0
    for item in items:
        n_seen, n_drawn_from = n_seen + 1, n_drawn_from + 1
        if rng.random() * n_drawn_from < 1:
            drawn = [item]
        if n_drawn_from < of_each:
            continue
        kept += drawn
        room, n_drawn_from = room - size(*drawn), 0
        while room < 0 and len(kept) > 1:
            kept = [kept[min(place + rng.randrange(2), len(kept) - 1)] for place in range(0, len(kept), 2)]
            room, of_each = most - sum(map(size, kept)), 2 * of_each
    return kept + (drawn if rng.random() * of_each < n_drawn_from else []), n_seen
