"""Steps of series as arrays: their scale, and straight lines over what is missing or left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]

CONSTANT = 1e-12
"""Deviation, as a share of the largest value, below which a channel is constant."""
LEAST = 1e-5
"""The variance that a series has at least."""


class Value(NamedTuple):
    """A series, or a stretch of one."""

    values_TC: NDArray[np.float32]
    known_TC: NDArray[np.float32]
    times_T: NDArray[np.int64] | None
    zone: str
    before: int | None
    goes_on: bool
    context: int
    channels: tuple[str, ...]
    id: str


@dataclass(frozen=True)
class Statistics:
    """Mean and deviation by column."""

    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()


class Moments:
    """Mean and deviation by column, of what comes in parts; missing values count for nothing."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._n: Any = 0
        self._mean: Any = 0.0
        self._squares: Any = 0.0
        self._largest: Any = 0.0

    def add(self, values_TC: Floats) -> None:
        """Chan et al. 1979: the moments of two parts together."""
        self.n_rows += len(values_TC)
        known_TC = np.isfinite(values_TC)
        values_TC = np.where(known_TC, values_TC, 0).astype(np.float64)
        n_C = known_TC.sum(0)
        mean_C = values_TC.sum(0) / np.maximum(n_C, 1)
        squares_C = (np.where(known_TC, values_TC - mean_C, 0) ** 2).sum(0)
        apart_C, total_C = mean_C - self._mean, np.maximum(self._n + n_C, 1)
        self._squares = self._squares + squares_C + apart_C**2 * self._n * n_C / total_C
        self._mean = self._mean + apart_C * n_C / total_C
        self._n = self._n + n_C
        self._largest = np.maximum(self._largest, np.abs(values_TC).max(0, initial=0))

    def statistics(self) -> Statistics:
        """The deviation of a channel that is constant is taken for 1."""
        deviation_C = np.sqrt(self._squares / np.maximum(self._n, 1))
        varies_C = deviation_C > CONSTANT + CONSTANT * self._largest
        return Statistics(tuple(self._mean.tolist()), tuple(np.where(varies_C, deviation_C, 1.0).tolist()))


def own_scale(steps_BTC: Floats) -> tuple[Floats, Floats]:
    """level_BC and spread_BC of each series by itself; 0 and 1 where nothing is known or all is one value."""
    level_BC, spread_BC = _level_and_spread(steps_BTC)
    varies_BC = spread_BC > 1e-6 * np.maximum(np.abs(level_BC), 1e-30)
    return level_BC.astype(np.float32), np.where(varies_BC, spread_BC, 1).astype(np.float32)


def restlessness(steps_BTC: Floats, deviation_C: Sequence[float]) -> NDArray[np.float32]:
    """spread_BC of each series by itself, in deviations of the training data; never quite 0."""
    _, spread_BC = _level_and_spread(steps_BTC)
    variance_BC: Floats = (spread_BC / np.array(deviation_C)) ** 2 + LEAST
    return np.asarray(np.sqrt(variance_BC), np.float32)


def _level_and_spread(steps_BTC: Floats) -> tuple[Floats, Floats]:
    known_BTC = np.isfinite(steps_BTC)
    n_BC = np.maximum(known_BTC.sum(1), 1)
    level_BC = np.where(known_BTC, steps_BTC, 0).sum(1) / n_BC
    apart_BTC = np.where(known_BTC, steps_BTC - level_BC[:, None], 0)
    return level_BC, np.sqrt((apart_BTC**2).sum(1) / n_BC)


def interpolated(steps_TC: Floats) -> NDArray[np.float32]:
    """The series with straight lines over its gaps; at the ends the nearest value goes on, else 0."""
    if np.isfinite(steps_TC).all():
        return np.asarray(steps_TC, np.float32)
    filled_TC = np.array(steps_TC, np.float32)
    every_T = np.arange(len(filled_TC))
    for column_T in filled_TC.T:
        known_T = np.isfinite(column_T)
        column_T[~known_T] = (
            np.interp(every_T[~known_T], every_T[known_T], column_T[known_T]) if known_T.any() else 0.0
        )
    return filled_TC


def bridge(steps_TC: Floats, begin: int, end: int) -> None:
    """Puts a straight line between its neighbours in the place of some steps."""
    inside_T = np.arange(begin, end)
    outside_T = [at for at in (begin - 1, end) if 0 <= at < len(steps_TC)]
    for column_T in steps_TC.T:
        column_T[begin:end] = np.interp(inside_T, outside_T, column_T[outside_T]) if outside_T else 0.0
