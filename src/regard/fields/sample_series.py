"""A series that every model of a field can read: with the columns and the clock that it was trained on."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.fields.clock import DAY, Clock
from regard.files.columns import Column

MONDAY = 18_267 * DAY
"""The 6th of January 2020, where samples begin."""


def sample_table(
    time: Column | None,
    id: Column | None,
    known: Sequence[Column],
    channels: Mapping[str, float],
    clock: Clock,
    n_past: int,
    n_ahead: int = 0,
) -> dict[str, list[Any]]:
    """A table by columns: each channel has one value in all rows of the past and none in those ahead."""
    n = n_past + n_ahead
    columns: dict[Column, list[Any]] = {}
    if time is not None or clock.pace != "none":
        columns[time or "time"] = _times(clock, n)
    if id is not None:
        columns[id] = ["1"] * n
    columns |= {name: [0.0] * n for name in known}
    numbered = any(isinstance(column, int) for column in columns) or all(map(str.isdecimal, channels))
    for name, value in channels.items():
        columns[int(name) if numbered else name] = [value] * n_past + [None] * n_ahead
    if not numbered:
        return {str(column): cells for column, cells in columns.items()}
    last = max(column for column in columns if isinstance(column, int))
    return {str(number): columns.get(number, [0.0] * n) for number in range(1, last + 1)}


def _times(clock: Clock, n: int) -> list[str]:
    if clock.is_regular:
        return [clock.written(at) for at in clock.after(MONDAY, n)]
    return [clock.written(MONDAY + step * DAY) for step in range(n)]
