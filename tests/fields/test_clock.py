"""Clocks: regular ones, what is missing by them, and the calendar."""

import random
from collections import Counter
from datetime import datetime, timedelta

import numpy as np
import pytest

from regard.fields.clock import DAY, Calendar, Clock, features, in_weekends, stands_in_month
from regard.files.stamps import NUMBER, SECOND

EPOCH = datetime(1970, 1, 1)
HOUR = 3600 * SECOND


def stamps(moments: list[datetime]) -> np.ndarray:
    return np.array([(moment - EPOCH) // timedelta(microseconds=1) for moment in moments], np.int64)


def clock(at_T: np.ndarray, zone: str = "") -> Clock:
    distances = Counter(np.diff(at_T).tolist())
    return Clock.of(distances, stands_in_month(at_T), in_weekends(at_T), zone)


def daily(n: int, first: datetime = datetime(2015, 3, 27, 6)) -> list[datetime]:
    return [first + timedelta(days=day) for day in range(n)]


def monthly(n: int, step: int = 1) -> list[datetime]:
    return [datetime(2015 + (m * step) // 12, 1 + (m * step) % 12, 1) for m in range(n)]


def month_ends(n: int) -> list[datetime]:
    return [first - timedelta(days=1) for first in monthly(n + 1)[1:]]


WEEKDAYS = [day for day in daily(60) if day.weekday() < 5]
REGULAR = {
    "even": (daily(31), Clock("even", DAY)),
    "months": (monthly(31), Clock("months", 1)),
    "quarters": (monthly(31, 3), Clock("months", 3)),
    "month ends": (month_ends(31), Clock("months", 1)),
    "weekdays": (WEEKDAYS, Clock("weekdays", 1)),
}


@pytest.mark.parametrize("name", REGULAR)
def test_a_regular_clock_misses_what_is_left_out_and_knows_what_comes(name: str) -> None:
    moments, expected = REGULAR[name]
    at_T = stamps(moments)
    assert clock(at_T) == expected
    assert expected.is_regular
    assert not expected.missing(at_T, None).any()
    assert expected.after(int(at_T[6]), len(at_T) - 7) == at_T[7:].tolist()
    rng = random.Random(name)
    kept = sorted(rng.sample(range(1, len(at_T)), 2 * len(at_T) // 3))
    gone = expected.missing(at_T[kept], int(at_T[0]))
    assert gone.tolist() == (np.diff([0, *kept]) - 1).tolist()


def test_a_few_missing_steps_leave_a_clock_regular() -> None:
    at_T = np.delete(stamps(daily(60)), [7, 8, 31])
    assert clock(at_T) == Clock("even", DAY)


def test_irregular_stamps_are_steps_as_they_come() -> None:
    rng = np.random.default_rng(1)
    at_T = np.cumsum(rng.integers(1, 10**9, 50))
    found = clock(at_T)
    assert found == Clock("uneven", 1)
    assert not found.missing(at_T, None).any()
    assert found.after(int(at_T[-1]), 3) == []
    assert "irregular" in found.describe()


def test_numbers_have_steps_but_no_calendar() -> None:
    months = np.arange(30) * 30 * DAY
    assert clock(months, NUMBER) == Clock("even", 30 * DAY, NUMBER)
    assert Clock("even", SECOND // 2, NUMBER).describe() == "a step is 0.5"


@pytest.mark.parametrize(
    ("given", "steps", "name"),
    [
        (Clock("even", HOUR), 24, "24 steps (1 day)"),
        (Clock("even", HOUR), 1, "1 step (1 hour)"),
        (Clock("even", HOUR // 4), 96, "96 steps (1 day)"),
        (Clock("even", HOUR // 4), 5, "5 steps (75 minutes)"),
        (Clock("even", DAY), 14, "14 steps (2 weeks)"),
        (Clock("months", 1), 12, "12 steps (1 year)"),
        (Clock("months", 3), 3, "3 steps (9 months)"),
        (Clock("weekdays", 1), 5, "5 steps"),
        (Clock("even", SECOND, NUMBER), 7, "7 steps"),
        (Clock(), 7, "7 steps"),
    ],
)
def test_spans_have_names(given: Clock, steps: int, name: str) -> None:
    assert given.span(steps) == name
    assert given.describe()


def slow(moment: datetime, name: Calendar) -> float:
    """The share of its round that a moment has passed, by the calendar of Python."""
    begin, end = datetime(moment.year, 1, 1), datetime(moment.year + 1, 1, 1)
    month = datetime(moment.year, moment.month, 1)
    next_month = datetime(moment.year + moment.month // 12, moment.month % 12 + 1, 1)
    shares: dict[str, float] = {
        "second": moment.second / 60,
        "minute": moment.minute / 60,
        "hour": moment.hour / 24,
        "weekday": moment.weekday() / 7,
        "day": (moment.day - 1) / (next_month - month).days,
        "month": (moment.month - 1) / 12,
        "week": (datetime(moment.year, moment.month, moment.day) - begin).days / (end - begin).days,
    }
    return shares[name]


@pytest.mark.parametrize("name", ["second", "minute", "hour", "weekday", "day", "month", "week"])
def test_the_calendar_is_that_of_python(name: Calendar) -> None:
    rng = random.Random(name)
    moments = [EPOCH + timedelta(seconds=rng.randrange(-(10**9), 3 * 10**9)) for _ in range(200)]
    angles = 2 * np.pi * np.array([slow(moment, name) for moment in moments])
    expected = np.stack([np.sin(angles), np.cos(angles)], 1)
    assert np.allclose(features(stamps(moments), [name]), expected, atol=1e-6)
