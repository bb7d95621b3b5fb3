"""A fair sample of what is too much to hold."""

import random
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

ENOUGH = 1_000_000
"""Rows that a vocabulary is learnt from at most: more teach it nothing new."""


def sampled(items: Iterable[T], most: int = ENOUGH) -> list[T]:
    """All of them in their order, or `most` drawn with equal chances; the same ones every time.

    A reservoir: the n-th item comes in with a chance of most/n, in the place of any other.
    """
    rng = random.Random(0)
    kept: list[T] = []
    for seen, item in enumerate(items, 1):
        if seen <= most:
            kept.append(item)
        elif (place := int(rng.random() * seen)) < most:
            kept[place] = item
    return kept
