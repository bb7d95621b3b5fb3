"""forecast: a table of measurements, a row for each moment, in one series or in many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from regard.check.finding import Finding, Place
from regard.check.rows import Splits
from regard.errors import DataError
from regard.fields.series import Series
from regard.files.columns import Column
from regard.files.measurements import TIME, is_number
from regard.files.row import Row
from regard.files.stamps import is_date, stamp
from regard.init.columns import Picked, Table
from regard.init.match import NOT, Fit, Given, Match, Missing
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting
from regard.tasks.task_data import TaskData

IDS = ("unique_id", "series_id", "series", "item_id", "sensor", "station", "id", "序列")
"""Names that a column usually has which tells series apart."""
SURE = 0.6
"""How special a column of times beside nothing but numbers is."""
WINDOW, HORIZON = 168, 24
"""Steps that are read at least, and steps that are foretold where there is no season, if there are enough."""
MANY = 2000
"""Steps from which a first recipe has a Transformer."""
ROWS_TOGETHER = 64
"""Windows of a batch."""
FLAT = 1e-12


@dataclass(frozen=True)
class Columns:
    """What the columns of a table of measurements are."""

    time: Column | None
    id: Column | None
    values: tuple[Column, ...]
    others: tuple[Column, ...]
    """Those that hold no numbers."""


@dataclass(frozen=True)
class SeriesData(TaskData):
    """Data whose rows are moments."""

    @property
    def possible_roles(self) -> frozenset[str]:
        return frozenset({*self.roles, "time", "id"})

    def recognise(self, table: Table, given: Given) -> Match | Missing:
        found = _columns(table, given)
        if not found.values:
            return Missing("series", "")
        if found.time is None and "time" not in given:
            score = -1.0
        else:
            score = -1.0 if found.others else 1 + SURE + (found.id is not None)
        settings: dict[str, Any] = {}
        reasons = []
        if found.time is not None:
            reasons.append(f"The time is {table.called(found.time)}.")
            settings["time"] = found.time
        if found.id is not None:
            reasons.append(f"Series are told apart by {table.called(found.id)}.")
            settings["id"] = found.id
        if found.others or found.time is None:
            left = ", ".join(map(table.called, found.others))
            reasons += [f"Left out, as they hold no numbers: {left}."] if found.others else []
            settings["values"] = found.values
        n = len(found.values)
        why = f"rows of {n:,} measurement{'s' * (n > 1)}" + (" with their times" if found.time else "")
        return Match({"series": None}, score, why, tuple(reasons), {"series": "series"}, {"series": settings})


def _columns(table: Table, given: Given) -> Columns:
    cells = table.cells
    time = given.get("time") or _time(table)
    id_ = given.get("id") or (None if time is None else _id(table, time))
    rest = [column for column in cells if column not in (time, id_)]
    values = [column for column in rest if all(map(is_number, cells[column]))]
    others = [column for column in rest if column not in values]
    return Columns(time, id_, tuple(values), tuple(others))


def _time(table: Table) -> Column | None:
    """The column of times: dates wherever they stand, numbers only under a name for times."""
    for column, cells in table.cells.items():
        named = str(column).lower() in TIME
        is_time = _is_stamp if named else _is_date
        if cells and all(map(is_time, cells)):
            return column
    return None


def _is_stamp(cell: object) -> bool:
    return stamp(str(cell)) is not None


def _is_date(cell: object) -> bool:
    return isinstance(cell, str) and is_date(cell)


def _id(table: Table, time: Column) -> Column | None:
    """The column within whose values times only increase, where they do not in the whole table."""
    stamps = [found.at for cell in table.cells[time] if (found := stamp(str(cell))) is not None]
    if all(one < other for one, other in pairwise(stamps)):
        return None
    able = [column for column in table.cells if column != time]
    named = [column for column in able if str(column).lower() in IDS]
    words = [column for column in able if not all(map(is_number, table.cells[column]))]
    for column in [*named, *words]:
        last: dict[str, int] = {}
        for name, at in zip(map(str, table.cells[column]), stamps, strict=True):
            if name in last and last[name] >= at:
                break
            last[name] = at
        else:
            return column
    return None


def _pick(role: str, rest: Table) -> Picked:
    return None, ""


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    return NOT


def _amount(rows: Sequence[Row]) -> tuple[int, str]:
    """Steps of all series."""
    return sum(len(row.cells["series"]["values"]) for row in rows), "steps"


def fitted(plan: Plan) -> Series:
    """The field, as it is learnt from a sample."""
    series = Series()
    return series.fit(series.parse(row.cells["series"], row.where) for row in plan.guess.sample)


def sizes(series: Series, longest: int) -> tuple[int, int]:
    """Look-back and horizon that suit a series of so many steps: one season ahead, from several."""
    season = series.season if series.season * 6 <= longest else 1
    horizon = max(1, min(season if season > 1 else HORIZON, longest // 20))
    window = max(2, min(WINDOW, longest // 8))
    return (window if season == 1 else max(1, round(window / season)) * season), horizon


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    series = fitted(plan)
    look_back, horizon = sizes(series, series.longest)
    span = series.clock.span
    season = f", the season is {span(series.season)}" if series.season > 1 else ", no season was found"
    task = [
        Setting("kind", "forecast", plan.guess.reason),
        Setting("look_back", look_back, f"{span(look_back)} are read{season}"),
        Setting("horizon", horizon, f"{span(horizon)} are foretold; {series.clock.describe()}"),
    ]
    if plan.guess.n_rows < MANY:
        return {
            "task": task,
            "model": [Setting("kind", "nlinear", "few steps: a linear model learns enough")],
        }
    patch = max(1, min(16, look_back // 8))
    encoder = [Setting("patch", patch), Setting("stride", max(1, patch // 2)), Setting("dropout", 0.3)]
    model = [Setting("kind", "forecaster"), Setting("dropout", 0.2)]
    return {
        "task": task,
        "model": model,
        "model.encoder": [
            Setting("kind", "patchtst"), Setting("channels", "independent"), *encoder,
            Setting("d_model", 32), Setting("d_ff", 128), Setting("n_layers", 2),
        ],
    }  # fmt: skip


def _pace(plan: Plan) -> Pace:
    look_back, _ = sizes(fitted(plan), max(len(row.cells["series"]["values"]) for row in plan.guess.sample))
    few = plan.guess.n_rows < MANY
    return Pace(
        epochs=50 if few else 10,
        warmup=30,
        lr=5e-3 if few else 1e-3,
        patience=10 if few else 3,
        average=1,
        batch_tokens=look_back * (16 if few else ROWS_TOGETHER),
        batch_reason=f"{16 if few else ROWS_TOGETHER} windows of {look_back:,} steps",
    )


def _examine(splits: Splits, config: Any) -> list[Finding]:
    """What the measurements are like: the clock, gaps, missing values, constant channels, what is short."""
    train = splits["train"]
    if not train:
        return []
    try:
        series = config.series.fit(config.series.parse(row.cells["series"], row.where) for row in train)
    except DataError as fault:
        return [Finding("error", "untrainable", str(fault))]
    season = (
        f"; the season is {series.clock.span(series.season)}" if series.season > 1 else "; no season found"
    )
    found = [Finding("note", "clock", f"train: {series.clock.describe()}{season}")]
    for split, rows in splits.items():
        found += [*_gaps(split, rows, series), *_missing(split, rows), *_short(split, rows, series, config)]
    return found + _constant(train)


def _gaps(split: str, rows: Sequence[Row], series: Series) -> list[Finding]:
    """Steps that the clock says are missing."""
    gaps: list[tuple[Row, int, int]] = []
    for row in rows:
        cell = row.cells["series"]
        if cell["time"] is None or not cell["time"]:
            continue
        times_T = np.array(cell["time"], np.int64)
        missing_T = series.clock.missing(times_T, cell["before"])
        gaps += [(row, int(times_T[at]), int(missing_T[at])) for at in np.flatnonzero(missing_T)]
    if not gaps:
        return []
    n, places = sum(missing for *_, missing in gaps), len(gaps)
    row, at, longest = max(gaps, key=lambda gap: gap[2])
    message = (
        f"{split}: {n:,} step{'s are' if n > 1 else ' is'} missing in {places:,} place{'s' * (places > 1)}, "
        f"{longest:,} of them before {series.clock.written(at)}; they are put in as missing values"
    )
    return [Finding("warning", "gaps", message, n, (Place(row.where),))]


def _missing(split: str, rows: Sequence[Row]) -> list[Finding]:
    n_missing: dict[str, int] = {}
    n_rows = 0
    for row in rows:
        cell = row.cells["series"]
        known_TC = np.isfinite(np.array(cell["values"], np.float64).reshape(len(cell["values"]), -1))
        n_rows += len(known_TC)
        for name, n in zip(cell["channels"], (~known_TC).sum(0).tolist(), strict=True):
            n_missing[name] = n_missing.get(name, 0) + n
    return [
        Finding(
            "warning",
            "missing",
            f"{split}: channel {name} has no value in {n:,} of {n_rows:,} rows; they count for nothing",
            n,
        )
        for name, n in n_missing.items()
        if n
    ]


def _constant(train: Sequence[Row]) -> list[Finding]:
    """Channels that never change teach nothing."""
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    for row in train:
        cell = row.cells["series"]
        values_TC = np.array(cell["values"], np.float64).reshape(len(cell["values"]), -1)
        for name, column_T in zip(cell["channels"], values_TC.T, strict=True):
            known_T = column_T[np.isfinite(column_T)]
            low[name] = min(low.get(name, np.inf), known_T.min(initial=np.inf))
            high[name] = max(high.get(name, -np.inf), known_T.max(initial=-np.inf))
    flat = [name for name in low if high[name] - low[name] <= FLAT * abs(high[name])]
    return [
        Finding(
            "warning",
            "constant",
            f"train: channel {name} is {high[name]:g} in all rows; nothing can be learnt of it, so leave it "
            "out of fields.series.values",
        )
        if np.isfinite(high[name])
        else Finding("warning", "constant", f"train: channel {name} has no value at all; leave it out")
        for name in flat + [name for name in low if not np.isfinite(high[name])]
    ]


def _short(split: str, rows: Sequence[Row], series: Series, config: Any) -> list[Finding]:
    """Series that have no window."""
    lengths: dict[tuple[str, str], int] = {}
    first: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row.file, row.cells["series"]["id"]
        first.setdefault(key, row)
        (coded,) = series.encode([series.parse(row.cells["series"], row.where)])
        lengths[key] = lengths.get(key, 0) + len(coded.arrays["steps"])
    needed = config.look_back + config.horizon
    short = [key for key, n in lengths.items() if n < needed]
    if not short:
        return []
    fate = "nothing is learnt from them" if split == "train" else "they are not scored"
    message = (
        f"{split}: {len(short):,} of {len(lengths):,} series are shorter than a window of {needed:,} steps "
        f"(task.look_back {config.look_back:,} and task.horizon {config.horizon:,}); {fate}"
    )
    severity: Any = "error" if len(short) == len(lengths) else "warning"
    return [
        Finding(
            severity,
            "short",
            message,
            len(short),
            tuple(Place(first[key].where, key[1]) for key in short[:3]),
        )
    ]


FORECAST = SeriesData(
    roles=("series",),
    texts=(),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=None,
    amount=_amount,
    held_out="the end of every series is held out (task.split)",
    tested="the very end of every series is held out (task.split)",
)
