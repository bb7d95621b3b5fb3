"""Order of batches: which examples form a batch and when, a pure function of (sizes, budget, seed, epoch).

An epoch is a permutation, cut into windows; inside a window examples are sorted by length, packed up to the
token budget, and the batches shuffled. The permutation is computed, never held: a window costs the same at a
thousand examples and at a billion. Workers, ranks and micro-batches only split what is defined here.
A size is one length per side, (source, target) or (text,); a batch costs rows × its longest side.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Size = tuple[int, ...]
Batch = list[int]

WINDOW = 16_384
"""Examples sorted together: enough for batches of one length, few enough to stay random and in memory."""
COUNTED = 8
"""Windows whose batches are counted to estimate how many an epoch has."""
ROUNDS = 6
"""Rounds of the permutation's Feistel network; at least four are needed to look random."""


class Place(NamedTuple):
    """Position in the order of batches: the next batch."""

    epoch: int
    window: int = 0
    batch: int = 0


START = Place(0)


class Order:
    """The batches of all epochs. `sizes` is (examples, sides) and may be mapped from a file."""

    def __init__(self, sizes: NDArray[np.integer], budget: int, seed: int) -> None:
        self.sizes, self.budget, self.seed = sizes, budget, seed
        self.window = lru_cache(maxsize=2)(self._window)

    @property
    def n_windows(self) -> int:
        return -(-len(self.sizes) // WINDOW)

    def _window(self, epoch: int, window: int) -> list[Batch]:
        """The batches of a window by index, in training order."""
        n = len(self.sizes)
        places = np.arange(window * WINDOW, min(n, (window + 1) * WINDOW))
        ids = permuted(places, n, (self.seed, epoch))
        lengths = np.asarray(self.sizes[ids])
        rng = np.random.default_rng((self.seed, epoch, window))
        by_length = np.lexsort(_blurred(lengths, rng).T)  # by the last side, then the others
        packed = [ids[batch].tolist() for batch in pack(by_length.tolist(), lengths.tolist(), self.budget)]
        return [packed[i] for i in rng.permutation(len(packed))]

    def batch(self, place: Place) -> Batch | None:
        """The batch at a place; None past the end of its window, as may happen after the data
        have changed.
        """
        batches = self.window(place.epoch, place.window) if place.window < self.n_windows else []
        return batches[place.batch] if place.batch < len(batches) else None

    def after(self, place: Place) -> Place:
        epoch, window, batch = place
        if window < self.n_windows and batch + 1 < len(self.window(epoch, window)):
            return Place(epoch, window, batch + 1)
        return Place(epoch, window + 1) if window + 1 < self.n_windows else Place(epoch + 1)

    def epoch(self, epoch: int) -> Iterator[Batch]:
        for window in range(self.n_windows):
            yield from self.window(epoch, window)

    @property
    def n_batches(self) -> int:
        """Batches of the first epoch, estimated from some windows if there are many; other epochs differ by a
        few.
        """
        counted = min(self.n_windows, COUNTED)
        n_examples = min(len(self.sizes), counted * WINDOW)
        n_batches = sum(len(self.window(0, window)) for window in range(counted))
        return round(n_batches * len(self.sizes) / n_examples)


def permuted(places: NDArray[np.integer], n: int, entropy: tuple[int, ...]) -> NDArray[np.int64]:
    """The examples at these places of a shuffled order of n, without computing the rest of it.

    A Feistel network permutes the next power of four; a result outside n is permuted again until it is
    inside.
    """
    half = max(1, -(-(n - 1).bit_length() // 2))
    mask = np.uint64(2**half - 1)
    shift = np.uint64(half)
    keys = np.random.SeedSequence(entropy).generate_state(ROUNDS, np.uint64)

    def shuffled(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
        left, right = x >> shift, x & mask
        for key in keys:
            left, right = right, left ^ (_mixed(right ^ key) & mask)
        return left << shift | right

    result = shuffled(places.astype(np.uint64))
    while (outside := result >= n).any():
        result[outside] = shuffled(result[outside])
    return result.astype(np.int64)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the input flips half of the output's."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def pack(
    order: Iterable[int], sizes: Sequence[Sequence[int]], budget: int, max_rows: int | None = None
) -> Iterator[Batch]:
    """Cut `order` into batches of rows × longest ≤ `budget` tokens; an example larger than that is alone."""
    batch: Batch = []
    longest = 0
    for i in order:
        longest = max(longest, *sizes[i])
        if batch and ((len(batch) + 1) * longest > budget or len(batch) == max_rows):
            yield batch
            batch, longest = [], max(sizes[i])
        batch.append(i)
    if batch:
        yield batch


def _blurred(lengths: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.floating]:
    """Lengths with noise of 5 % on all sides but the last, so that ties break differently in every epoch."""
    blur = rng.uniform(0.95, 1.05, size=lengths.shape)
    blur[:, -1] = 1
    return lengths * blur


def sorted_batches(sizes: Sequence[Size], budget: int, max_rows: int | None = None) -> list[Batch]:
    """Batches for evaluation, longest first, so that memory runs out at the beginning or never."""
    order = sorted(range(len(sizes)), key=lambda i: sizes[i], reverse=True)
    return list(pack(order, sizes, budget, max_rows))


def split(batch: Sequence[int], n_parts: int) -> list[list[int]]:
    """Split a batch into n nearly equal micro-batches; fewer if it has fewer examples, none if it
    is empty.
    """
    bounds = np.linspace(0, len(batch), min(n_parts, len(batch)) + 1).round().astype(int)
    return [list(batch[start:stop]) for start, stop in pairwise(bounds)]
