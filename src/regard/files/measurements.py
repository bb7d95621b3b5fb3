"""Tables of measurements: a row is a moment, a column a channel; an `id` column tells several series apart.

A series becomes one row of ours, or several that follow one another: a stretch of it, as long as fits into
memory. The cell of a stretch is what JSON can hold:

    {"id": "…", "channels": ["HUFL", …], "values": [[5.8, None, …], …], "known": [[1.0], …],
     "time": [1467331200000000, …], "zone": "", "goes_on": False, "before": None}

Times are microseconds (stamps.py). `goes_on` says that the series has begun in the stretch before, whose last
time is `before`. Rows of one series must be in the order of time; series may be mixed, but then the file is
held in memory as long as it is read.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.errors import DataError, quoted, shown
from regard.files.columns import Column, column_name
from regard.files.lines import Refuse, refuse_at_once
from regard.files.stamps import NUMBER, Stamp, is_date, stamp, written

STRETCH = 65_536
"""Moments after which a series goes on in another stretch."""
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "<na>"})
TRUTH = {"true": 1.0, "false": 0.0}
TIME = ("time", "date", "datetime", "timestamp", "ds", "日期", "时间")
"""Names that a column of time stamps usually has."""
LARGEST = 3e38
"""Largest single-precision number, rounded down."""


class Stretch(dict[str, Any]):
    """The cell of a stretch: made here, so that its parts fit together."""

    def __str__(self) -> str:
        n, times, names = len(self["values"]), self["time"], ", ".join(self["channels"])
        when = f" from {written(times[0], self['zone'])}" if times else ""
        name = f"{self['id']}: " if self["id"] else ""
        return f"{name}{n:,} steps of {names}{when}"


Line = tuple[int, Sequence[object]]
"""The number of a record in its file, and its cells."""


@dataclass(frozen=True)
class Measured:
    """Meaning of the columns of such a table."""

    time: Column | None = None
    """Column of time stamps; by default the one that is named like one, or the first if it holds dates."""
    id: Column | None = None
    """Says which series a row belongs to; without it all rows are one series."""
    values: tuple[Column, ...] = ()
    """The channels; by default all other columns."""
    known: tuple[Column, ...] = ()
    """Columns that are known ahead of time."""
    whole: bool = False
    """True if a long series stays one, and does not become stretches."""

    @property
    def given(self) -> list[Column]:
        return [*(one for one in (self.time, self.id) if one is not None), *self.values, *self.known]


@dataclass(frozen=True)
class _Places:
    """Places of the cells in a row."""

    time: int | None
    id: int | None
    values: Sequence[int]
    known: Sequence[int]
    others: Mapping[str, int]
    names: Sequence[str]

    @property
    def channels(self) -> list[str]:
        return [self.names[place] for place in self.values]


def has_header(first: Sequence[object]) -> bool:
    """True if the first record of a table names its columns: one of its cells is no measurement."""
    return any(map(is_word, first))


def is_word(cell: object) -> bool:
    """True if a cell holds something else than a number, a time stamp or nothing."""
    return not is_missing(cell) and stamp(str(cell)) is None


def stretches(
    file: str,
    lines: Iterator[Line],
    measured: Measured,
    others: Mapping[str, Column | None],
    names: Sequence[str] | None = None,
    refuse: Refuse = refuse_at_once,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The first line of each stretch, and by role its cell: `series`, and what `others` ask for, such as a
    label, which must be the same in all rows of a series.

    Without `names` the first line may be a header.
    """
    first = next(lines, None)
    if first is None:
        return
    number, cells = first
    if names is None:
        headed = has_header(cells) or any(isinstance(column, str) for column in measured.given)
        names = [str(cell).strip() for cell in cells] if headed else None
    else:
        headed = False
    if headed:
        second = next(lines, None)
        if second is None:
            return
        number, cells = second
    places = _places(file, measured, others, names, cells)
    table = _Table(file, places, refuse, streams=places.id is None and not measured.whole)
    yield from table.add(number, cells)
    for number, cells in lines:
        yield from table.add(number, cells)
    yield from table.rest()


def _places(
    file: str,
    measured: Measured,
    others: Mapping[str, Column | None],
    header: Sequence[str] | None,
    first: Sequence[object],
) -> _Places:
    names = [str(number) for number in range(1, len(first) + 1)] if header is None else list(header)

    def place(role: str, column: Column) -> int:
        if isinstance(column, int):
            if not 1 <= column <= len(names):
                raise DataError(f"{file}: no column {column} ({role}); its columns are 1 to {len(names)}")
            return column - 1
        if header is None:
            raise DataError(f"{file}: has no header, so no column {column} ({role}); give its number")
        column = column_name(file, role, column, names)
        if names.count(column) > 1:
            raise DataError(f"{file}: several columns are named {column}; rename all but one")
        return names.index(column)

    id_ = None if measured.id is None else place("id", measured.id)
    known = [place("known_future", column) for column in measured.known]
    rest = {role: place(role, column_name(file, role, column, names) if header else column or 1)
            for role, column in others.items()}  # fmt: skip
    taken = {*([] if id_ is None else [id_]), *known, *rest.values()}
    if measured.time is not None:
        time: int | None = place("time", measured.time)
    else:
        time = _time(names, first, taken)
    taken |= set() if time is None else {time}
    values = [place("values", column) for column in measured.values]
    values = values or [at for at in range(len(names)) if at not in taken]
    if not values:
        raise DataError(f"{file}: has no column of measurements beside {', '.join(names)}")
    if twice := [names[at] for at in values if values.count(at) > 1 or at in known or at == time]:
        raise DataError(f"{file}: column {twice[0]} is asked for twice; give every column one meaning")
    return _Places(time, id_, values, known, rest, names)


def _time(names: Sequence[str], first: Sequence[object], taken: set[int]) -> int | None:
    free = [at for at in range(min(len(names), len(first))) if at not in taken]
    named = [at for at in free if names[at].lower() in TIME]
    dated = [at for at in free[:1] if is_date(str(first[at]))]
    return next(iter(named or dated), None)


@dataclass
class _Series:
    """A series while it is read."""

    line: int
    others: dict[str, str]
    values: list[list[float | None]] = field(default_factory=list)
    known: list[list[float | None]] = field(default_factory=list)
    time: list[int] = field(default_factory=list)
    last: Stamp | None = None
    before: int | None = None
    goes_on: bool = False


class _Table:
    """Collects rows by series; where there is only one, a stretch is given away as soon as it is long."""

    def __init__(self, file: str, places: _Places, refuse: Refuse, *, streams: bool) -> None:
        self.file, self.places, self.refuse, self.streams = file, places, refuse, streams
        self.series: dict[str, _Series] = {}
        self.zone: str | None = None

    def add(self, number: int, cells: Sequence[object]) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            name = self._add(number, cells)
        except DataError as fault:
            self.refuse(fault)
            return
        if self.streams and len(self.series[name].values) == STRETCH:
            yield self._given(name)

    def rest(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for name, series in self.series.items():
            if series.values:
                yield self._given(name)

    def _given(self, name: str) -> tuple[int, dict[str, Any]]:
        series = self.series[name]
        cell = Stretch(
            id=name,
            channels=self.places.channels,
            values=series.values,
            known=series.known,
            time=series.time if self.places.time is not None else None,
            zone=self.zone or "",
            goes_on=series.goes_on,
            before=series.before,
        )
        row = series.line, {"series": cell, **series.others}
        before = series.time[-1] if series.time else None
        self.series[name] = _Series(series.line, series.others, last=series.last, before=before, goes_on=True)
        return row

    def _add(self, number: int, cells: Sequence[object]) -> str:
        where, places = f"{self.file}:{number}", self.places
        if len(cells) != len(places.names):
            raise DataError(
                f"{where}: {len(cells)} cells found, the first line has {len(places.names)}; "
                "every moment needs a cell for each column, empty where nothing was measured"
            )
        name = "" if places.id is None else str(cells[places.id]).strip()
        if places.id is not None and not name:
            raise DataError(
                f"{where}: column {places.names[places.id]} is empty; say which series this is of"
            )
        others = {role: str(cells[place]).strip() for role, place in places.others.items()}
        series = self.series.setdefault(name, _Series(number, others))
        if others != series.others:
            role = next(role for role in others if others[role] != series.others[role])
            raise DataError(
                f"{where}: series {quoted(name)} has the {role} {quoted(others[role])} here and "
                f"{quoted(series.others[role])} before; a series has one {role}"
            )
        at = None if places.time is None else self._stamp(where, cells[places.time], series, name)
        values = [
            number_of(cells[place], f"{where}: column {places.names[place]}") for place in places.values
        ]
        known = [number_of(cells[place], f"{where}: column {places.names[place]}") for place in places.known]
        if not series.values:
            series.line = number
        series.values.append(values)
        series.known.append(known)
        if at is not None:
            series.time.append(at.at)
            series.last = at
        return name

    def _stamp(self, where: str, cell: object, series: _Series, name: str) -> Stamp:
        at = stamp(str(cell))
        if at is None:
            raise DataError(
                f"{where}: {quoted(str(cell))} is no time stamp; write it like 2016-07-31 13:00, in one zone"
            )
        if self.zone is None:
            self.zone = at.zone
        if at.zone != self.zone:
            raise DataError(f"{where}: {_mixed(str(cell), at.zone, self.zone)}")
        if series.last is not None and at.at <= series.last.at:
            of = f" of series {quoted(name)}" if name else ""
            if at.at == series.last.at:
                raise DataError(
                    f"{where}: the time {written(at.at, at.zone)}{of} occurs twice; keep one row for each "
                    "moment, or name the column that tells series apart (fields.series.id)"
                )
            raise DataError(
                f"{where}: the time {written(at.at, at.zone)}{of} is before that of the row above "
                f"({written(series.last.at, at.zone)}); sort the rows by time"
            )
        return at


def whole(rows: list[list[float | None]]) -> Stretch:
    """The cell of a series that is read as a whole, without names of channels and time stamps."""
    return Stretch(
        id="",
        channels=[str(number) for number in range(1, len(rows[0]) + 1)],
        values=rows,
        known=[[] for _ in rows],
        time=None,
        zone="",
        goes_on=False,
        before=None,
    )


def _mixed(cell: str, zone: str, first: str) -> str:
    if NUMBER in (zone, first):
        return f"{quoted(cell)} among time stamps of another kind; write all as dates, or all as numbers"
    there, here = (quoted(each) if each else "no zone" for each in (first, zone))
    return (
        f"time stamps of mixed zones ({quoted(cell)} has {here}, those before have {there}); "
        "write all of them in one zone, such as UTC"
    )


def is_number(cell: object) -> bool:
    """True if a cell holds a measurement, or nothing."""
    try:
        number_of(cell, "")
    except DataError:
        return False
    return True


def is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING)


def number_of(cell: object, where: str) -> float | None:
    """A measurement; None where it is missing, DataError where it is none."""
    if is_missing(cell):
        return None
    try:
        number = float(TRUTH.get(str(cell).lower(), cell))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise DataError(
            f"{where}: {shown(cell)} is not a number; leave the cell empty where nothing was measured"
        ) from None
    if math.isnan(number):
        return None
    if not abs(number) <= LARGEST:
        raise DataError(
            f"{where}: {shown(cell)} is not a finite number; leave the cell empty where it is unknown"
        )
    return number
