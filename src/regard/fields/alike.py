"""Which pictures are nearly the same: by a hash of where they grow lighter, then by what is left of them.

The hash has a bit for each of 8 × 8 places, whether it is darker than its right neighbour (dHash). Saving a
picture anew, in another size or format, flips few of them.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

ROWS, COLUMNS = 8, 9
"""Size that pictures are reduced to, in grey."""
FLIPPED = 3
"""Bits in which hashes of the same picture differ at most."""
DIFFERENCE = 6.0
"""Shades of 255 by which what is left of them differs at most, on average."""
BANDS = 4
"""A hash is cut into so many parts, of which one is intact where no more than three bits are flipped."""
CROWD = 1000
"""Pictures with one part alike, of which each is compared with the next few alone: they are nearly blank."""
NEXT = 20

Grey = NDArray[np.uint8]


def hash_of(left_NYX: Grey) -> NDArray[np.uint64]:
    """The hashes of pictures of which 8 × 9 shades of grey are left."""
    darker = left_NYX[:, :, :-1] < left_NYX[:, :, 1:]
    packed: NDArray[np.uint64] = np.packbits(darker.reshape(len(left_NYX), -1), axis=1).view(">u8")[:, 0]
    return packed.astype(np.uint64)


def earlier_twins(left_NYX: Grey) -> dict[int, int]:
    """Map each picture with a twin to the first picture that is nearly the same."""
    hashes_N = hash_of(left_NYX)
    earlier: dict[int, int] = {}
    for first, second in _candidates(hashes_N):
        twins = np.bitwise_count(hashes_N[first] ^ hashes_N[second]) <= FLIPPED
        first, second = first[twins], second[twins]
        difference = np.abs(left_NYX[first].astype(np.int16) - left_NYX[second]).mean((1, 2))
        close = difference <= DIFFERENCE
        for one, other in zip(first[close].tolist(), second[close].tolist(), strict=True):
            earlier[other] = min(one, earlier.get(other, one))
    return earlier


def _candidates(hashes_N: NDArray[np.uint64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs of numbers, the smaller first, of pictures whose hashes have a part in common."""
    for band in range(BANDS):
        part_N = (hashes_N >> np.uint64(16 * band)) & np.uint64(0xFFFF)
        order = np.lexsort((hashes_N, part_N))
        borders = [0, *(np.flatnonzero(np.diff(part_N[order])) + 1).tolist(), len(order)]
        yield from _by_size([order[begin:end] for begin, end in pairwise(borders) if end - begin > 1])


def _by_size(groups: Sequence[NDArray[np.int64]]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """All pairs of each group, those of many small groups together."""
    firsts: list[NDArray[np.int64]] = []
    seconds: list[NDArray[np.int64]] = []
    held = 0
    for group in groups:
        if len(group) <= CROWD:
            one, other = np.triu_indices(len(group), 1)
        else:
            at = np.arange(len(group))
            one, other = np.repeat(at, NEXT), (at[:, None] + np.arange(1, NEXT + 1)).ravel()
            one, other = one[other < len(group)], other[other < len(group)]
        pair = group[one], group[other]
        firsts.append(np.minimum(*pair))
        seconds.append(np.maximum(*pair))
        held += len(one)
        if held > 1_000_000:
            yield np.concatenate(firsts), np.concatenate(seconds)
            firsts, seconds, held = [], [], 0
    if firsts:
        yield np.concatenate(firsts), np.concatenate(seconds)
