"""Means of a few seeds with their intervals, and what they decide."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple, Self

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""The 97.5 % quantile of Student's t with 1 to 9 degrees of freedom."""


class Interval(NamedTuple):
    """A mean and its 95 % interval; of something exact, or counted once, all three are the same."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """The interval of a mean over seeds, by Student's t."""
        mean = fmean(values)
        if len(values) == 1:
            return cls(mean, mean, mean)
        t = STUDENT[min(len(values) - 2, len(STUDENT) - 1)]
        half = t * stdev(values) / math.sqrt(len(values))
        return cls(mean, mean - half, mean + half)

    def __str__(self) -> str:
        if self.low == self.high:
            return number(self.mean)
        return f"{number(self.mean)} [{number(self.low)}, {number(self.high)}]"


def number(value: float) -> str:
    """Three digits that count, or a power of ten where there would be many zeros."""
    if value == 0 or not math.isfinite(value):
        return str(value)
    if not 1e-3 <= abs(value) < 1e5:
        return f"{value:.1e}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def exponent(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The p of y ≈ c · xᵖ: the slope of a straight line through the logarithms."""
    log_x, log_y = [math.log(x) for x in xs], [math.log(y) for y in ys]
    mean_x, mean_y = fmean(log_x), fmean(log_y)
    above = sum((x - mean_x) * (y - mean_y) for x, y in zip(log_x, log_y, strict=True))
    return above / sum((x - mean_x) ** 2 for x in log_x)
