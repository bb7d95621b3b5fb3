"""How far a score can be trusted: what it would have been on other examples, and with the answers of another.

Intervals are those of the percentile bootstrap (Efron 1979): the examples are drawn anew, with repetition.
Two systems are compared on the same examples. The interval of their difference comes from the same draws for
both; its p-value from approximate randomisation (Noreen 1989): the two exchange their answers to half of the
examples at random, and p is how often they then differ at least as much as they really do.

A tally never builds the examples anew: a draw is how often each example counts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Scores = dict[str, Floats]
"""By metric, one for each draw."""

DRAWS = 2000
SEED = 1
OUTSIDE = 40
"""One in so many draws lies below an interval, and as many above it: 95 % are within."""
AT_ONCE = 4_000_000
"""Weights that are held at a time."""


@runtime_checkable
class Weighable(Protocol):
    """A tally that can be scored as if some examples were there more often, and others not at all."""

    @property
    def truth(self) -> Sequence[Any]:
        """What would have been right, of each example: where it differs, answers cannot be compared."""

    def __add__(self, other: Self) -> Self: ...

    def taken(self, places: Sequence[int]) -> Self:
        """Of these examples, in this order."""

    def weighed(self, weights_RN: Floats) -> Scores:
        """The metrics for each row of weights, which says how often each example counts."""


@dataclass(frozen=True)
class Difference:
    """Of a metric between two systems: the first's less the second's."""

    value: float
    interval: tuple[float, float]
    p: float


def plainly(tally: Weighable) -> dict[str, float]:
    """The metrics when every example counts once."""
    once_1N = np.ones((1, len(tally.truth)))
    return {name: float(score) for name, (score,) in tally.weighed(once_1N).items()}


def intervals(tally: Weighable) -> dict[str, tuple[float, float]]:
    """Of every metric, the range that holds 95 % of what other examples of the same kind would give.

    One that is infinite for some of them has none.
    """
    found = _each(tally.weighed, _drawn(len(tally.truth)))
    return {name: _within(scores_R) for name, scores_R in found.items() if np.isfinite(scores_R).all()}


def differences(one: Weighable, other: Weighable) -> dict[str, Difference]:
    """Of every metric that both have and that is finite; they must have been asked the same."""
    n = len(one.truth)
    here, there = plainly(one), plainly(other)
    apart = _each(lambda weights_RN: _less(one.weighed(weights_RN), other.weighed(weights_RN)), _drawn(n))
    both = one + other

    def exchanged(swap_RN: Floats) -> Scores:
        first = both.weighed(np.hstack([1 - swap_RN, swap_RN]))
        return _less(first, both.weighed(np.hstack([swap_RN, 1 - swap_RN])))

    by_chance = _each(exchanged, _swaps(n))
    return {
        name: Difference(
            here[name] - there[name], _within(apart[name]), _p(here[name] - there[name], by_chance[name])
        )
        for name in apart
        if np.isfinite(apart[name]).all()
    }


def _less(first: Scores, second: Scores) -> Scores:
    return {name: first[name] - second[name] for name in first if name in second}


def _p(difference: float, by_chance_R: Floats) -> float:
    """The real assignment is one of those that chance could have made, so it counts as well."""
    rounding = 1e-9
    as_much = np.count_nonzero(np.abs(by_chance_R) >= abs(difference) - rounding)
    return float((as_much + 1) / (len(by_chance_R) + 1))


def _within(scores_R: Floats) -> tuple[float, float]:
    low_to_high_R, cut = np.sort(scores_R), len(scores_R) // OUTSIDE
    return float(low_to_high_R[cut]), float(low_to_high_R[-1 - cut])


def _each(weigh: Callable[[Floats], Scores], parts: Iterator[Floats]) -> Scores:
    with np.errstate(invalid="ignore"):  # what is infinite: no times, or less itself
        found = [weigh(weights_RN) for weights_RN in parts]
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}


def _drawn(n: int) -> Iterator[Floats]:
    """How often each of `n` examples is drawn in each of DRAWS, some draws at a time."""
    rng = np.random.default_rng(SEED)
    for rows in _parts(n):
        places_RN = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(places_RN.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def _swaps(n: int) -> Iterator[Floats]:
    """Which of `n` answers are exchanged."""
    rng = np.random.default_rng(SEED)
    for rows in _parts(n):
        yield rng.integers(2, size=(rows, n)).astype(np.float64)


def _parts(n: int) -> Iterator[int]:
    most = max(1, AT_ONCE // n)
    for begin in range(0, DRAWS, most):
        yield min(most, DRAWS - begin)
