"""The clock of a series: when its next step is due, which steps are missing, what the calendar says.

Stamps are microseconds (files/stamps.py). Three clocks are regular: steps of one length, months, and weekdays
(no stamp falls on a weekend). Otherwise every row is a step, whenever it was.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from regard.files.stamps import NUMBER, SECOND, written

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Pace = Literal["even", "months", "weekdays", "uneven", "none"]
Calendar = Literal["second", "minute", "hour", "weekday", "day", "month", "week"]

DAY = 86_400 * SECOND
REGULAR = 0.9
"""The share of distances between neighbours that are one step, from which a clock is regular."""
UNITS = (
    (7 * DAY, "week"),
    (DAY, "day"),
    (3600 * SECOND, "hour"),
    (60 * SECOND, "minute"),
    (SECOND, "second"),
)
WAVES = {
    "second": (SECOND, 60),
    "minute": (60 * SECOND, 60),
    "hour": (3600 * SECOND, 24),
    "weekday": (DAY, 7),
}
"""What of a calendar goes round evenly: the length of a unit, and how many make a round."""


@dataclass(frozen=True)
class Clock:
    pace: Pace = "none"
    step: int = 1
    """Microseconds, months or weekdays from one step to the next."""
    zone: str = ""

    @classmethod
    def of(cls, distances: "Counter[int]", months: bool, weekends: bool, zone: str) -> Self:
        """The clock of stamps with these distances between neighbours; `months`: all of them stand at the
        same time of the first, or of the last, day of a month; `weekends`: some of them stand in one.
        """
        n = distances.total()
        if not n:
            return cls("uneven", 1, zone)
        if months and zone != NUMBER and min(distances) >= 28 * DAY:
            steps = Counter({round(distance / (30.44 * DAY)): count for distance, count in distances.items()})
            return cls("months", min(steps), zone)
        usual, count = max(distances.items(), key=lambda item: (item[1], -item[0]))
        if usual == DAY and not weekends and zone != NUMBER and count < n and 3 * DAY in distances:
            return cls("weekdays", 1, zone)
        fitting = sum(count for distance, count in distances.items() if distance % usual == 0)
        if count >= REGULAR * n and fitting >= REGULAR * n:
            return cls("even", usual, zone)
        return cls("uneven", 1, zone)

    @property
    def is_regular(self) -> bool:
        return self.pace in ("even", "months", "weekdays")

    def missing(self, at_T: Ints, before: int | None) -> Ints:
        """How many steps are missing before each stamp; `before` is the stamp in front of them all."""
        if not self.is_regular or not len(at_T):
            return np.zeros(len(at_T), np.int64)
        numbers = self._numbers(np.concatenate([at_T[:1] if before is None else [before], at_T]))
        return np.asarray(np.maximum(np.diff(numbers) - 1, 0), np.int64)

    def _numbers(self, at_T: Ints) -> Ints:
        """The number of the step nearest to each stamp, counted from the first."""
        if self.pace == "months":
            months = _month(at_T)
            return np.asarray((months - months[0]) // self.step, np.int64)
        if self.pace == "weekdays":
            days = (at_T // DAY).astype("datetime64[D]")
            return np.busday_count(days[0], days).astype(np.int64)
        return np.asarray((at_T - at_T[0] + self.step // 2) // self.step, np.int64)

    def after(self, last: int, n: int) -> list[int]:
        """The stamps of the next `n` steps; none where there is no knowing them."""
        if self.pace == "even":
            return [last + self.step * i for i in range(1, n + 1)]
        if self.pace == "months":
            return [_later(last, self.step * i) for i in range(1, n + 1)]
        if self.pace == "weekdays":
            day = np.datetime64(last // DAY, "D")
            days = np.busday_offset(day, np.arange(1, n + 1), roll="backward").astype(np.int64)
            return [int(each) * DAY + last % DAY for each in days]
        return []

    def span(self, steps: int) -> str:
        """What so many steps are called: `24 steps (1 day)`."""
        said = f"{steps:,} step{'s' * (steps != 1)}"
        if self.pace == "even" and self.zone != NUMBER:
            whole = next(((length, name) for length, name in UNITS if steps * self.step % length == 0), None)
            if whole is not None:
                n = steps * self.step // whole[0]
                return f"{said} ({n:,} {whole[1]}{'s' * (n != 1)})"
        if self.pace == "months":
            n, name = (
                (steps * self.step, "month") if steps * self.step % 12 else (steps * self.step // 12, "year")
            )
            return f"{said} ({n:,} {name}{'s' * (n != 1)})"
        return said

    def describe(self) -> str:
        """What is assumed of the stamps, in a sentence."""
        if self.pace == "none":
            return "there is no column of time stamps: every row is a step"
        if self.pace == "uneven":
            return "the time stamps are irregular: every row is a step, however long after the one before"
        if self.pace == "weekdays":
            return "a step is a weekday"
        return f"a step is {self.span(1).partition('(')[2].rstrip(')') or _plain(self.step)}"

    def written(self, at: int) -> str:
        return written(at, self.zone)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _plain(step: int) -> str:
    return f"{step / SECOND:g}"


def features(at_T: Ints, names: Sequence[Calendar]) -> Floats:
    """Columns from −1 to 1 that say where in the calendar each moment stands: a sine and a cosine each."""
    columns = [wave(2 * np.pi * _share(at_T, name)) for name in names for wave in (np.sin, np.cos)]
    return np.stack(columns, 1).astype(np.float32) if columns else np.zeros((len(at_T), 0), np.float32)


def _share(at_T: Ints, name: Calendar) -> NDArray[np.float64]:
    """The share of its round that has passed."""
    if name in WAVES:
        length, n = WAVES[name]
        first = 3 * DAY if name == "weekday" else 0  # 1970 began on a Thursday
        return ((at_T + first) // length % n) / n
    months = at_T.astype("datetime64[us]").astype("datetime64[M]")
    if name == "month":
        return (months.astype(np.int64) % 12) / 12
    days = at_T // DAY
    if name == "day":
        begin, end = (each.astype("datetime64[D]").astype(np.int64) for each in (months, months + 1))
    else:
        years = months.astype("datetime64[Y]")
        begin, end = (each.astype("datetime64[D]").astype(np.int64) for each in (years, years + 1))
    return (days - begin) / (end - begin)


def stands_in_month(at_T: Ints) -> bool:
    """Whether all stamps stand at the same time of the first day of a month, or of the last."""
    days = at_T.astype("datetime64[us]").astype("datetime64[D]")
    begins = days.astype("datetime64[M]").astype("datetime64[D]")
    ends = (days.astype("datetime64[M]") + 1).astype("datetime64[D]") - 1
    return bool((days == begins).all() or (days == ends).all()) and len(set((at_T % DAY).tolist())) == 1


def in_weekends(at_T: Ints) -> bool:
    return bool(((at_T // DAY + 3) % 7 >= 5).any())


def _month(at_T: Ints) -> Ints:
    return at_T.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)


def _later(at: int, months: int) -> int:
    """The same day of a later month; its last where `at` is the last of one."""
    day = np.datetime64(at // DAY, "D")
    month = day.astype("datetime64[M]")
    place = (day - month.astype("datetime64[D]")).astype(int)
    is_last = (day + 1).astype("datetime64[M]") != month
    begin, end = ((month + months + i).astype("datetime64[D]") for i in (0, 1))
    found = end - 1 if is_last else min(begin + place, end - 1)
    return int(found.astype(np.int64)) * DAY + at % DAY
