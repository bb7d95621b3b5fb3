"""Confidence intervals and significance tests of scores, by resampling.

Intervals are those of the percentile bootstrap (Efron 1979): the examples are drawn anew, with repetition.
Two systems are compared on the same examples. The interval of their difference comes from the same draws for
both; its p-value from approximate randomisation (Noreen 1989): the two exchange their answers to half of the
examples at random, and p is how often they then differ at least as much as they really do.

A tally never builds the examples anew: a draw is a weight for each example.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Scores = dict[str, Floats]
"""Scores by metric, one for each draw."""

DRAWS = 2000
SEED = 1
OUTSIDE = 40
"""One in so many draws lies below an interval, and as many above it: 95 % are within."""
AT_ONCE = 4_000_000
"""Weights in memory at a time."""


@runtime_checkable
class Weighable(Protocol):
    """A tally that can be scored as if some examples were there more often, and others not at all."""

    @property
    def truth(self) -> Sequence[Any]:
        """The right answer of each example: where it differs, two systems cannot be compared."""

    def __add__(self, other: Self) -> Self: ...

    def taken(self, places: Sequence[int]) -> Self:
        """The tally of these examples, in this order."""

    def weighed(self, weights_RN: Floats) -> Scores:
        """The metrics for each row of weights, which says how often each example counts."""


@dataclass(frozen=True)
class Difference:
    """The difference of a metric between two systems: the first's less the second's."""

    value: float
    interval: tuple[float, float]
    p: float


def unweighted(tally: Weighable) -> dict[str, float]:
    """The metrics when every example counts once."""
    once_1N = np.ones((1, len(tally.truth)))
    return {name: float(score) for name, (score,) in tally.weighed(once_1N).items()}


def intervals(tally: Weighable) -> dict[str, tuple[float, float]]:
    """The range of every metric that holds 95 % of the scores that resampled examples give.

    A metric that is infinite for some of them has none.
    """
    scores = _each(tally.weighed, _drawn(len(tally.truth)))
    return {name: _within(scores_R) for name, scores_R in scores.items() if np.isfinite(scores_R).all()}


def differences(first: Weighable, second: Weighable) -> dict[str, Difference]:
    """The difference of every finite metric of both; they must have answered the same examples."""
    n = len(first.truth)
    ours, theirs = unweighted(first), unweighted(second)
    apart = _each(lambda weights_RN: _less(first.weighed(weights_RN), second.weighed(weights_RN)), _drawn(n))
    both = first + second

    def exchanged(swap_RN: Floats) -> Scores:
        swapped = both.weighed(np.hstack([1 - swap_RN, swap_RN]))
        return _less(swapped, both.weighed(np.hstack([swap_RN, 1 - swap_RN])))

    by_chance = _each(exchanged, _swaps(n))
    return {
        name: Difference(
            ours[name] - theirs[name], _within(apart[name]), _p(ours[name] - theirs[name], by_chance[name])
        )
        for name in apart
        if np.isfinite(apart[name]).all()
    }


def _less(first: Scores, second: Scores) -> Scores:
    return {name: first[name] - second[name] for name in first if name in second}


def _p(difference: float, by_chance_R: Floats) -> float:
    """The p-value; the real assignment is one of the possible ones, so it counts as well."""
    rounding = 1e-9
    as_much = np.count_nonzero(np.abs(by_chance_R) >= abs(difference) - rounding)
    return float((as_much + 1) / (len(by_chance_R) + 1))


def _within(scores_R: Floats) -> tuple[float, float]:
    low_to_high_R, cut = np.sort(scores_R), len(scores_R) // OUTSIDE
    return float(low_to_high_R[cut]), float(low_to_high_R[-1 - cut])


def _each(weigh: Callable[[Floats], Scores], parts: Iterator[Floats]) -> Scores:
    with np.errstate(invalid="ignore"):  # infinities: times zero, or less themselves
        scores = [weigh(weights_RN) for weights_RN in parts]
    return {name: np.concatenate([part[name] for part in scores]) for name in scores[0]}


def _drawn(n: int) -> Iterator[Floats]:
    """Counts of each of `n` examples in each of DRAWS bootstrap samples, some samples at a time."""
    rng = np.random.default_rng(SEED)
    for rows in _parts(n):
        places_RN = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(places_RN.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def _swaps(n: int) -> Iterator[Floats]:
    """Random choices of the `n` answers to exchange."""
    rng = np.random.default_rng(SEED)
    for rows in _parts(n):
        yield rng.integers(2, size=(rows, n)).astype(np.float64)


def _parts(n: int) -> Iterator[int]:
    most = max(1, AT_ONCE // n)
    for begin in range(0, DRAWS, most):
        yield min(most, DRAWS - begin)
