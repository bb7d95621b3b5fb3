"""Sequences of different length as rows of one array."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAD = 0


def padded(sequences: Sequence[Any]) -> NDArray[np.int64]:
    """One row per sequence of integers, filled up with padding: a copy, never a mapped file itself."""
    lengths = np.array([len(sequence) for sequence in sequences])
    rows = np.full((len(sequences), lengths.max()), PAD, np.int64)
    rows[np.arange(lengths.max()) < lengths[:, None]] = np.concatenate(sequences)
    return rows


def lengths(sequences: Sequence[Any]) -> NDArray[np.int64]:
    return np.array([len(sequence) for sequence in sequences], np.int64)
