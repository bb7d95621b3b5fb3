"""Which examples form a batch, and in what order: a pure function of (sizes, budget, seed, epoch).

Examples are shuffled, cut into windows, sorted by length inside a window, packed up to the token budget,
and the batches shuffled. Workers, ranks and micro-batches only split what is defined here.
A size is one length per side, (source, target) or (text,); a batch costs rows × its longest side.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Size = tuple[int, ...]

WINDOW = 16_384
"""Examples sorted together: enough for batches of one length, few enough to stay random and in memory."""


def pack(
    order: Iterable[int], sizes: Sequence[Size], budget: int, max_rows: int | None = None
) -> Iterator[list[int]]:
    """Cut `order` so that rows × longest stays within `budget` tokens; a single longer one goes alone."""
    batch: list[int] = []
    longest = 0
    for i in order:
        longest = max(longest, *sizes[i])
        if batch and ((len(batch) + 1) * longest > budget or len(batch) == max_rows):
            yield batch
            batch, longest = [], max(sizes[i])
        batch.append(i)
    if batch:
        yield batch


def epoch_batches(sizes: Sequence[Size], budget: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of one epoch, by index, in training order."""
    rng = np.random.default_rng((seed, epoch))
    order = rng.permutation(len(sizes))
    lengths = np.asarray(sizes)
    batches: list[list[int]] = []
    for start in range(0, len(order), WINDOW):
        window = order[start : start + WINDOW]
        by_length = window[np.lexsort(_blurred(lengths[window], rng).T)]  # by the last side, then the others
        packed = list(pack(by_length.tolist(), sizes, budget))
        batches += [packed[i] for i in rng.permutation(len(packed))]
    return batches


def _blurred(lengths: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.floating]:
    """The sides that break ties, within a twentieth: or the same examples would meet in every epoch."""
    blur = rng.uniform(0.95, 1.05, size=lengths.shape)
    blur[:, -1] = 1
    return lengths * blur


def sorted_batches(sizes: Sequence[Size], budget: int, max_rows: int | None = None) -> list[list[int]]:
    """For evaluation: longest first, so that memory is asked for at the beginning or never."""
    order = sorted(range(len(sizes)), key=lambda i: sizes[i], reverse=True)
    return list(pack(order, sizes, budget, max_rows))


def split(batch: Sequence[int], n_parts: int) -> list[list[int]]:
    """Micro-batches: n nearly equal parts (fewer when the batch has fewer examples)."""
    bounds = np.linspace(0, len(batch), min(n_parts, len(batch)) + 1).round().astype(int)
    return [list(batch[start:stop]) for start, stop in pairwise(bounds)]
