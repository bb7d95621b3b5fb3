"""Time stamps: what is written in a cell → microseconds, and the zone it was written in.

Dates are read as ISO 8601 has them, with the year first (`2016-07-01 13:00`, `2016/7/1`,
`20160701T1300+02:00`), or with points and the day first (`1.7.2016 13:00`). What could be day or month
(7/1/2016) is refused. A plain number is a count: it has an order and distances, but no calendar.
"""

import re
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

NUMBER = "number"
"""The zone of a plain number."""
SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1)
_CLOCK = r"(?:[T ]\s*(\d{1,2}):?(\d{2})(?::?(\d{2})(?:[.,](\d{1,9}))?)?)?"
_ZONE = r"\s*(Z|[+-]\d{2}(?::?\d{2})?)?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.]?)(\d{{1,2}})(?:\2(\d{{1,2}}))?{_CLOCK}{_ZONE}")
_DAY_FIRST = re.compile(rf"(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}}){_CLOCK}{_ZONE}")
LARGEST = 2**62


class Stamp(NamedTuple):
    at: int
    """Microseconds since the beginning of 1970 by the clock on the wall; of a plain number, millionths."""
    zone: str
    """Offset of the clock from UTC (`+02:00`), nothing where that is not said, or NUMBER."""


def stamp(text: str) -> Stamp | None:
    """A time stamp; None if it is none."""
    text = text.strip()
    return _date(text) or _count(text)


def is_date(text: str) -> bool:
    return _date(text.strip()) is not None


def written(at: int, zone: str) -> str:
    """A stamp as it is written in a file."""
    if zone == NUMBER:
        return f"{at / SECOND:.15g}"
    date, fraction = str(np.datetime64(at, "us")).replace("T", " ").split(".")
    return f"{date}{'' if int(fraction) == 0 else f'.{fraction}'}{zone}"


def _count(text: str) -> Stamp | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return Stamp(round(number * SECOND), NUMBER) if abs(number) < LARGEST / SECOND else None


def _date(text: str) -> Stamp | None:
    if matched := _YEAR_FIRST.fullmatch(text):
        year, between, month, day, *rest = matched.groups()
        if not between and (len(month) < 2 or day is None or len(day) < 2):
            return None  # 2016 and 201607 are numbers
    elif matched := _DAY_FIRST.fullmatch(text):
        day, month, year, *rest = matched.groups()
    else:
        return None
    hour, minute, second, fraction, zone = rest
    try:
        clock = int(hour or 0), int(minute or 0), int(second or 0)
        date = datetime(int(year), int(month), int(day or 1), *clock)
    except ValueError:
        return None
    micros = int((fraction or "")[:6].ljust(6, "0"))
    return Stamp((date - _EPOCH) // timedelta(microseconds=1) + micros, _offset(zone))


def _offset(zone: str | None) -> str:
    if zone is None:
        return ""
    if zone == "Z":
        return "+00:00"
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return f"{zone[0]}{digits[:2]}:{digits[2:]}"
