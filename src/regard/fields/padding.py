"""Sequences of different length as rows of one array."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAD = 0
NOWHERE = -1
"""The place of a word that is not there."""


def padded(sequences: Sequence[Any], fill: int = PAD, *, least: int = 0) -> NDArray[np.int64]:
    """One row per sequence of integers, filled up: a copy, never a mapped file itself."""
    lengths = np.array([len(sequence) for sequence in sequences])
    rows = np.full((len(sequences), max(least, lengths.max())), fill, np.int64)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = np.concatenate(sequences)
    return rows


def lengths(sequences: Sequence[Any]) -> NDArray[np.int64]:
    return np.array([len(sequence) for sequence in sequences], np.int64)


def integers(array: Any) -> NDArray[np.int64]:
    """An array to count with: the cache keeps numbers in as few bytes as they need, unsigned."""
    return np.asarray(array, np.int64)
