"""What a series field learns of its training data: channels, statistics, and the clock of time stamps."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.errors import DataError
from regard.fields.clock import Calendar, Clock, features, in_weekends, stands_in_month
from regard.fields.steps import Moments, Value
from regard.files.stamps import NUMBER

LOOKED_AT = 200_000
"""Steps in which the season is looked for, and the error of the seasonal naive forecast measured."""
MOST_DISTANCES = 10_000
"""Different distances between time stamps that are counted."""


class Seen:
    """Statistics of the training data, gathered in one pass."""

    def __init__(self, calendar: Sequence[Calendar]) -> None:
        self.calendar = calendar
        self.channels: tuple[str, ...] = ()
        self.values, self.known = Moments(), Moments()
        self.distances: Counter[int] = Counter()
        self.months, self.weekends, self.timed = True, False, True
        self.zone = ""
        self.longest, self.length = 0, 0
        self.kept: list[list[Value]] = []
        self.n_kept = 0

    def add(self, value: Value) -> None:
        if not self.channels:
            self.channels, self.zone = value.channels, value.zone
        if len(value.channels) != len(self.channels):
            raise DataError(
                f"series {value.id or 1}: has {len(value.channels)} channels, others have "
                f"{len(self.channels)}; all series must have the same"
            )
        self.values.add(value.values_TC)
        self.length = len(value.values_TC) + (self.length if value.goes_on else 0)
        self.longest = max(self.longest, self.length)
        self._time(value)
        if self.n_kept < LOOKED_AT and (self.kept or not value.goes_on):
            if not value.goes_on:
                self.kept.append([])
            self.kept[-1].append(value)
            self.n_kept += len(value.values_TC)

    def _time(self, value: Value) -> None:
        times_T = value.times_T
        known_TC = value.known_TC
        if times_T is None:
            self.timed = False
        else:
            if value.zone != self.zone:
                raise DataError(
                    f"series {value.id or 1}: time stamps of another kind or zone ({value.zone or 'none'}) "
                    f"than before ({self.zone or 'none'}); write all of them alike"
                )
            chained_T = times_T if value.before is None else np.concatenate([[value.before], times_T])
            if len(self.distances) < MOST_DISTANCES:
                each, counts = np.unique(np.diff(chained_T), return_counts=True)
                self.distances.update(dict(zip(each.tolist(), counts.tolist(), strict=True)))
            if value.zone != NUMBER:
                self.months = self.months and stands_in_month(times_T)
                self.weekends = self.weekends or in_weekends(times_T)
                known_TC = np.concatenate([known_TC, features(times_T, self.calendar)], 1)
        if self.calendar and (times_T is None or value.zone == NUMBER):
            raise DataError(
                "fields.series.calendar: the series have no dates; name their column (fields.series.time)"
            )
        self.known.add(known_TC)

    def learnt(self) -> dict[str, Any]:
        """Attributes that a field learns from all values, by their names."""
        if not self.values.n_rows:
            raise DataError("the training data hold no series")
        clock = Clock.of(self.distances, self.months, self.weekends, self.zone) if self.timed else Clock()
        return {
            "channels": self.channels,
            "measured": self.values.statistics(),
            "known": self.known.statistics(),
            "clock": clock,
            "longest": self.longest,
        }
