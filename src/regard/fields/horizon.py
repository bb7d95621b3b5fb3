"""The window at the end of a series: what is read, and what is known of the steps that follow."""

from typing import Any

import numpy as np

from regard.errors import DataError
from regard.fields.field import Coded
from regard.fields.series import Series


def window_ahead(series: Series, coded: Coded, look_back: int, horizon: int, where: str) -> Coded:
    """The last steps of an encoded series and their times; empty rows at its end are the future."""
    steps_TC, times_T = coded.arrays["steps"], coded.notes["times"]
    end = int(np.flatnonzero(np.isfinite(steps_TC).any(1)).max(initial=-1)) + 1
    if end < look_back:
        raise DataError(
            f"{where}: the series has {end:,} steps, the model reads {look_back:,} "
            "(task.look_back); give more of its past"
        )
    begin = end - look_back
    arrays: dict[str, Any] = {
        "steps": steps_TC[begin:end],
        "future": np.full((horizon, steps_TC.shape[1]), np.nan, np.float32),
    }
    if "known" in coded.arrays:
        arrays["known"] = _known(series, coded, begin, end, horizon, where)
    ahead = [] if times_T is None else series.clock.after(int(times_T[end - 1]), horizon)
    past = None if times_T is None else times_T[begin:end]
    return Coded(arrays, {**coded.notes, "past": past, "ahead": ahead})


def _known(series: Series, coded: Coded, begin: int, end: int, horizon: int, where: str) -> Any:
    """Values known for past and horizon: those of rows without measurements, and the calendar."""
    known_TK = coded.arrays["known"]
    if len(known_TK) >= end + horizon:
        return known_TK[begin : end + horizon]
    config, clock = series.config, series.clock
    if config.known_future:
        raise DataError(
            f"{where}: {len(known_TK) - end:,} rows follow the last measurement, {horizon:,} are "
            f"needed, with {', '.join(map(str, config.known_future))} and without measurements"
        )
    ahead = clock.after(int(coded.notes["times"][end - 1]), horizon)
    if not ahead:
        raise DataError(
            f"{where}: {clock.describe()}, so the calendar of the horizon is not known; train without "
            "fields.series.calendar"
        )
    known_YK = series.calendar(np.array(ahead, np.int64))
    return np.concatenate([known_TK[begin:end], known_YK])
