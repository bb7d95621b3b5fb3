"""Naive forecasts: the last value repeated, or the last season."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from regard.baselines.baseline import Baseline
from regard.files.row import Row

Floats = NDArray[Any]


class LastValue(Baseline):
    """The last known value of each channel."""

    name: ClassVar[str] = "last value"

    def __init__(self, horizon: int, season: int) -> None:
        self.horizon, self.season = horizon, season

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        """Take the season from the task's field; nothing else is learnt."""
        return cls(task.horizon, 1)

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [repeated(one.arrays["steps"], self.season, self.horizon) for one in examples]


class SeasonalNaive(LastValue):
    """The value one season before, if the past that is read holds a whole season."""

    name: ClassVar[str] = "seasonal naive"

    @classmethod
    def suits(cls, task: Any) -> bool:
        season: int = task.series.season
        look_back: int = task.look_back
        return 1 < season <= look_back

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(task.horizon, task.series.season)


def repeated(steps_TC: Floats, season: int, horizon: int) -> Floats:
    """forecast_CY1: the last season repeated; a step that is missing in it is taken from the season before.

    A step that was never seen is the last value of its channel, or 0 if there is none.
    """
    n_before = -len(steps_TC) % season
    whole_TC = np.pad(np.asarray(steps_TC, np.float64), ((n_before, 0), (0, 0)), constant_values=np.nan)
    last_SC = last_known(whole_TC.reshape(-1, season, steps_TC.shape[1]))
    last_SC = np.where(np.isnan(last_SC), np.nan_to_num(last_known(steps_TC)), last_SC)
    forecast_YC = last_SC[np.arange(horizon) % season]
    return np.ascontiguousarray(forecast_YC.T[..., None])


def last_known(values: Floats) -> Floats:
    """The last value along the first axis that is not NaN; NaN where there is none."""
    numbers = np.arange(len(values)).reshape(-1, *[1] * (values.ndim - 1))
    last = np.where(np.isnan(values), 0, numbers).max(0, keepdims=True)
    latest: Floats = np.take_along_axis(values, last, 0)[0]
    return latest
