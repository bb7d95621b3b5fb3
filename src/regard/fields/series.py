"""A series: measurements over time, in one channel or several.

A cell is a short series by itself (a list of numbers, a list for each channel, a small table), or a stretch
of a table of measurements (files/measurements.py). What is missing is NaN; steps that a regular clock says
are missing are put in. Arrays: `steps` (steps × channels, as measured), and where there are such, `known`
(what is known ahead of time, and the calendar); `opens`, whether a series begins here, and `context`, how
many steps only stand before what is to be forecast.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Setting

from regard import durable
from regard.errors import CheckpointError, DataError, did_you_mean, shown
from regard.fields import clock as clocks
from regard.fields.axis import Axis
from regard.fields.clock import Calendar, Clock
from regard.fields.field import Arrays, Coded, Field, FieldSettings, Occlusion, Suggestion, Width
from regard.fields.sample_series import sample_table
from regard.fields.season import season, seasonal_error
from regard.fields.seen import Seen
from regard.fields.steps import CONSTANT, Statistics, Value, bridge, interpolated, own_scale
from regard.files.columns import Column
from regard.files.content import File
from regard.files.formats import file_cells
from regard.files.measurements import Measured, Stretch, is_number, number_of, stretches, whole
from regard.files.read import read_rows
from regard.files.stamps import NUMBER

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]

MOST_STEPS = 100_000
"""Steps of a series that is read as a whole."""
MOST_FILLED = 1_000_000
"""Steps that may be missing in one place."""
OF_LISTS = 0.9
"""Likeness of a list of lists of numbers."""


class SeriesSettings(FieldSettings):
    """Measurements: the columns of their tables, and how they are scaled."""

    kind: Literal["series"] = "series"
    time: Column | None = Setting(
        None, description="column of time stamps; by default the one named like time or date"
    )
    id: Column | None = Setting(
        None, description="column that says which series a row belongs to; without it a table is one series"
    )
    values: tuple[Column, ...] = Setting((), description="columns of measurements; by default all others")
    known_future: tuple[Column, ...] = Setting(
        (), description="columns known ahead of time, such as holidays or planned prices"
    )
    calendar: tuple[Calendar, ...] = Setting(
        (), description="what of the date the model reads: hour, weekday, day, week, month, minute, second"
    )
    scale: Literal["train", "series", "none"] = Setting(
        "train",
        description="mean 0 and deviation 1 by channel: of all training data, of each series, or as is",
    )
    season: int | None = Setting(
        None, ge=1, description="steps after which it repeats itself; by default found in the training data"
    )


@dataclass(frozen=True)
class Series(Field):
    """Field, and the input of an encoder that reads a series as a whole."""

    kind: ClassVar[str] = "series"
    settings: ClassVar[type[FieldSettings]] = SeriesSettings
    reads: ClassVar[str] = "steps"
    spread: ClassVar[bool] = True
    widget: ClassVar[str] = "series"
    example: ClassVar[str] = "series.csv"
    accepts: ClassVar[str] = ".csv,.tsv,.txt,text/csv,text/plain"

    config: SeriesSettings = field(default_factory=SeriesSettings)
    channels: tuple[str, ...] = ()
    measured: Statistics = field(default_factory=Statistics)
    known: Statistics = field(default_factory=Statistics)
    clock: Clock = field(default_factory=Clock)
    longest: int = 0
    """Steps of a series in training."""
    season: int = 1
    naive_error: tuple[float, ...] = ()
    """By channel, of the seasonal naive forecast one season ahead."""
    optional: bool = False
    name: str = "series"

    @classmethod
    def resembles(cls, cells: Sequence[Any]) -> float:
        """The share of lists of numbers; lists of such might be pictures as well."""
        return sum(map(_likeness, cells)) / max(1, len(cells))

    @classmethod
    def suggest(cls, cells: Sequence[Any]) -> Suggestion:
        return Suggestion({}, round(float(np.mean([len(cell["values"]) for cell in cells]))))

    @classmethod
    def of(cls, settings: SeriesSettings) -> Self:
        return cls(settings)

    @property
    def columns(self) -> Measured:
        """What columns of a table of measurements are; of a fitted field those that it was fitted to."""
        config = self.config
        return Measured(config.time, config.id, config.values or self.channels, config.known_future)

    @property
    def sample(self) -> Any:
        return self.sampled(max(2, self.longest))

    def sampled(self, n_past: int, n_ahead: int = 0) -> Any:
        """A series that does not change, and the rows of what is known ahead of time."""
        config, mean = self.config, self.measured.mean or (0.0,)
        named = [*(one for one in (config.time, config.id) if one is not None), *config.known_future]
        if not named and self.clock.pace == "none" and all(map(str.isdecimal, self.channels)):
            return [[value] * n_past for value in mean]
        channels = dict(zip(self.channels, mean, strict=True))
        return sample_table(
            config.time, config.id, config.known_future, channels, self.clock, n_past, n_ahead
        )

    @property
    def width(self) -> Width:
        whole = self.config.scale == "train"
        n = len(self.channels)
        return {
            "channels": n,
            "known": len(self.known.mean),
            "steps": self.longest,
            "mean": list(self.measured.mean) if whole else [0.0] * n,
            "deviation": list(self.measured.deviation) if whole else [1.0] * n,
            "known_mean": list(self.known.mean),
            "known_deviation": list(self.known.deviation),
            "each": self.config.scale == "series",
        }

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Stretch:
        if isinstance(cell, Stretch):
            return cell
        if isinstance(cell, Path):
            return self._file(cell, where, name)
        if isinstance(cell, bytes):
            return self._table(cell.decode("utf-8-sig", errors="replace"), where, name)
        if isinstance(cell, str):
            return self._table(cell, where, name)
        if isinstance(cell, Mapping):
            return self._columns(cell, where, name)
        if isinstance(cell, list) and cell:
            return _whole(cell, where, name)
        raise DataError(
            f"{where}: {name} is {shown(cell)}; give a list of numbers, a list for each channel, or a table"
        )

    def typed(self, text: str, name: str) -> Any:
        """Numbers, or the path of a file that holds one series."""
        first = text.replace(",", " ").replace(";", " ").split()[:1]
        return text if first and is_number(first[0]) else Path(text)

    def receive(self, file: File, name: str) -> Any:
        return file

    def _file(self, path: Path, where: str, name: str) -> Stretch:
        """The only series of a file of any format."""
        measured = replace(self.columns, whole=True)
        found = [
            row.cells["series"]
            for row in read_rows([str(path)], {"series": None}, fields={"series": self}, measured=measured)
        ]
        if len(found) > 1:
            raise DataError(f"{path}: holds {len(found)} series; give one, or answer them all with --file")
        (only,) = found
        assert isinstance(only, Stretch)
        return only

    def _table(self, text: str, where: str, name: str) -> Stretch:
        """A table as text with commas or tabs; one line of numbers is a series of one channel."""
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) == 1 and not self.config.id:
            return _whole(lines[0].replace(",", " ").replace(";", " ").split(), where, name)
        table = file_cells("table.tsv" if "\t" in text else "table.csv", iter(lines))
        return self._only(stretches(where, iter(table), replace(self.columns, whole=True), {}), where, name)

    def _columns(self, columns: Mapping[Any, object], where: str, name: str) -> Stretch:
        """A table as columns by name."""
        lists = {str(key): column for key, column in columns.items() if isinstance(column, list)}
        if len(lists) < len(columns) or not lists or len({*map(len, lists.values())}) > 1:
            raise DataError(
                f"{where}: {name} must be lists of the same length by column, as in "
                '{"time": […], "load": […]}'
            )
        rows = enumerate(zip(*lists.values(), strict=True), 1)
        measured = replace(self.columns, whole=True)
        return self._only(stretches(where, rows, measured, {}, list(lists)), where, name)

    def _only(self, found: Iterable[tuple[int, Mapping[str, Any]]], where: str, name: str) -> Stretch:
        several = [cells["series"] for _, cells in found]
        if len(several) != 1:
            said = "holds no row" if not several else f"holds {len(several)} series"
            raise DataError(f"{where}: {name} {said}; give one series")
        (only,) = several
        assert isinstance(only, Stretch)
        return only

    def fit(self, values: Iterable[Value]) -> Self:
        seen = Seen(self.config.calendar)
        for value in values:
            seen.add(value)
        field = replace(self, **seen.learnt())
        looked_at = [
            np.concatenate([coded.arrays["steps"] for coded in field.encode(parts)]) for parts in seen.kept
        ]
        steps = self.config.season or season(looked_at)
        return replace(field, season=steps, naive_error=(*map(float, seasonal_error(looked_at, steps)),))

    def parse(self, cell: Stretch, where: str) -> Value:
        values_TC = np.array(cell["values"], np.float32).reshape(len(cell["values"]), -1)
        known_TC = np.array(cell["known"], np.float32).reshape(len(values_TC), -1)
        times_T = None if cell["time"] is None else np.array(cell["time"], np.int64)
        channels = tuple(cell["channels"])
        if self.channels and self.config.calendar and (times_T is None or cell["zone"] == NUMBER):
            raise DataError(
                f"{where}: has no dates, and fields.series.calendar ({', '.join(self.config.calendar)}) "
                "needs them; give a table with a column of dates"
            )
        if self.channels and channels != self.channels:
            values_TC, channels = self._in_order(values_TC, channels, where), self.channels
        return Value(
            values_TC, known_TC, times_T, cell["zone"], cell["before"], cell["goes_on"],
            cell.get("context", 0), channels, cell["id"],
        )  # fmt: skip

    def _in_order(self, values_TC: Floats, channels: tuple[str, ...], where: str) -> NDArray[np.float32]:
        """The channels that were learnt from, in their order; names of their numbers say nothing."""
        if all(map(str.isdecimal, (*channels, *self.channels))):
            if len(channels) == len(self.channels):
                return np.asarray(values_TC, np.float32)
            shape = f"{len(values_TC):,} row{'s' * (len(values_TC) != 1)} of {len(channels):,}"
            raise DataError(
                f"{where}: has {shape} columns, where the model reads {len(self.channels)}; give a row "
                "for each step and a column for each channel"
            )
        missing = [name for name in self.channels if name not in channels]
        if missing:
            n = f"{len(channels)} channel{'s' * (len(channels) != 1)}"
            raise DataError(
                f"{where}: has no channel {missing[0]}, which the model was trained on, but {n}"
                f"{did_you_mean(missing[0], channels)}"
            )
        return np.asarray(values_TC[:, [channels.index(name) for name in self.channels]], np.float32)

    def encode(self, values: Sequence[Value]) -> list[Coded]:
        return [self._encoded(value) for value in values]

    def _encoded(self, value: Value) -> Coded:
        times_T = value.times_T
        n = len(value.values_TC)
        gone_T = np.zeros(n, np.int64) if times_T is None else self.clock.missing(times_T, value.before)
        if gone_T.max(initial=0) > MOST_FILLED:
            at = int(gone_T.argmax())
            raise DataError(
                f"before {self.clock.written(int(times_T[at]))} {gone_T[at]:,} steps are missing, where "  # type: ignore[index]
                f"{self.clock.describe()}; give what follows as another series (fields.series.id)"
            )
        places_T = np.arange(n) + np.cumsum(gone_T)
        size = int(places_T[-1]) + 1 if n else 0
        steps_TC = np.full((size, value.values_TC.shape[1]), np.nan, np.float32)
        steps_TC[places_T] = value.values_TC
        arrays: dict[str, Any] = {
            "steps": steps_TC,
            "opens": np.array([not value.goes_on]),
            "context": np.array([int(places_T[value.context - 1]) + 1 if value.context else 0]),
        }
        at_T = None if times_T is None else _whenever(times_T, places_T, value.before)
        if self.known.mean:
            known_TC = np.full((size, value.known_TC.shape[1]), np.nan, np.float32)
            known_TC[places_T] = value.known_TC
            assert at_T is not None or not self.config.calendar
            dates = () if at_T is None else (self.calendar(at_T),)
            arrays["known"] = np.concatenate([known_TC, *dates], 1)
        notes = {"filled": int(gone_T.sum()), "times": at_T, "id": value.id}
        return Coded(arrays, notes)

    def scales(self, steps_BTC: Floats) -> tuple[Floats, Floats]:
        """level_BC and spread_BC that steps are scaled by: those of the training data, or of each series."""
        if self.config.scale == "series":
            return own_scale(steps_BTC)
        n, width = len(steps_BTC), self.width
        level_C, spread_C = (np.array(width[name], np.float32) for name in ("mean", "deviation"))
        return np.tile(level_C, (n, 1)), np.tile(spread_C, (n, 1))

    def calendar(self, times_T: Ints) -> NDArray[np.float32]:
        """What the calendar says of these moments."""
        return clocks.features(times_T, self.config.calendar)

    def save(self, folder: Path) -> None:
        saved = {
            "channels": self.channels,
            "mean": self.measured.mean,
            "deviation": self.measured.deviation,
            "known_mean": self.known.mean,
            "known_deviation": self.known.deviation,
            "clock": self.clock.to_json(),
            "longest": self.longest,
            "season": self.season,
            "naive_error": self.naive_error,
        }
        (folder / "series.json").write_text(json.dumps(saved, ensure_ascii=False, indent=1), "utf-8")

    def load(self, folder: Path) -> Self:
        path = folder / "series.json"
        try:
            saved = durable.read_json(path)
            numbers = {
                name: tuple(map(float, saved[name]))
                for name in ("mean", "deviation", "known_mean", "known_deviation", "naive_error")
            }
            fitted = replace(
                self,
                channels=tuple(map(str, saved["channels"])),
                measured=Statistics(numbers["mean"], numbers["deviation"]),
                known=Statistics(numbers["known_mean"], numbers["known_deviation"]),
                clock=Clock(**saved["clock"]),
                longest=int(saved["longest"]),
                season=int(saved["season"]),
                naive_error=numbers["naive_error"],
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise CheckpointError(f"{path}: cannot be read ({error}); copy the whole folder") from error
        n = len(fitted.channels)
        if not n or {len(numbers[name]) for name in ("mean", "deviation", "naive_error")} != {n}:
            raise CheckpointError(f"{path}: should hold as many numbers as channels; copy the whole folder")
        return fitted

    # The input of an encoder that reads a series as a whole.

    def alone(self, limit: int) -> Self:
        return self

    @property
    def most(self) -> int:
        return self.longest

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        """The steps alone; of a series longer than any in training the first."""
        ((arrays, notes),) = parts
        steps_TC = arrays["steps"]
        cut = self.longest and len(steps_TC) > self.longest
        return Coded({"steps": steps_TC[: self.longest] if cut else steps_TC}, {**notes, "cut": bool(cut)})

    def is_empty(self, arrays: Arrays) -> bool:
        return not np.isfinite(arrays["steps"]).any()

    def size(self, arrays: Arrays) -> int:
        return len(arrays["steps"])

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        series = [self._scaled(arrays["steps"]) for arrays in many]
        lengths_B = np.array([len(one) for one in series], np.int64)
        steps_BTC = np.zeros((len(series), lengths_B.max(), series[0].shape[1]), np.float32)
        for row_TC, one in zip(steps_BTC, series, strict=True):
            row_TC[: len(one)] = one
        return {"steps": steps_BTC, "lengths": lengths_B}

    def _scaled(self, steps_TC: Floats) -> Floats:
        """Without gaps; of a series that is scaled by itself, with mean 0 and deviation 1 in each channel."""
        filled_TC = interpolated(steps_TC)
        if self.config.scale != "series":
            return filled_TC
        centred_TC = filled_TC - filled_TC.mean(0)
        deviation_C = centred_TC.std(0)
        scaled_TC: Floats = centred_TC / np.where(deviation_C > CONSTANT, deviation_C, 1)
        return scaled_TC

    def without(self, batch: Arrays, axis: Axis, units: Sequence[int], how: Occlusion) -> Arrays:
        """Time does not close up over what is left out: a straight line takes its place."""
        assert axis.spans is not None
        steps_BTC = np.repeat(batch["steps"], len(units), 0)
        for row_TC, unit in zip(steps_BTC, units, strict=True):
            bridge(row_TC, *axis.spans[unit])
        return {"steps": steps_BTC, "lengths": np.repeat(batch["lengths"], len(units), 0)}

    def axis(self, values: Sequence[Value], coded: Coded) -> Axis:
        n = len(coded.arrays["steps"])
        labels = tuple(str(step) for step in range(1, n + 1))
        return Axis(self.name, labels, unit="step", spans=tuple((step, step + 1) for step in range(n)))


def _whenever(times_T: Ints, places_T: Ints, before: int | None) -> Ints:
    """The times of all steps, those that were missing among them."""
    size = int(places_T[-1]) + 1 if len(places_T) else 0
    if size == len(times_T):
        return times_T
    if before is not None:
        times_T, places_T = np.concatenate([[before], times_T]), np.concatenate([[-1], places_T])
    return np.interp(np.arange(size), places_T, times_T).round().astype(np.int64)


def _likeness(cell: object) -> float:
    if isinstance(cell, Stretch):
        return 1.0
    if not isinstance(cell, list) or not cell:
        return 0.0
    first = cell[0]
    if isinstance(first, list):
        return OF_LISTS * bool(first and _is_number(first[0]))
    return float(_is_number(first) and len(cell) > 1)


def _is_number(cell: object) -> bool:
    """Numbers keep their spelling in files of JSON."""
    try:
        return not isinstance(cell, bool) and isinstance(float(cell), float)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def _whole(cell: Sequence[object], where: str, name: str) -> Stretch:
    """A series that is given as a list, or as a list for each channel."""
    channels = [channel if isinstance(channel, list) else None for channel in cell]
    if all(channel is None for channel in channels):
        channels = [list(cell)]
    lengths = {len(channel) if channel is not None else -1 for channel in channels}
    if len(lengths) > 1 or min(lengths) < 1:
        raise DataError(
            f"{where}: the channels of {name} are not lists of one length; leave nothing out, a missing "
            "value is null"
        )
    if max(lengths) > MOST_STEPS:
        raise DataError(f"{where}: {name} has {max(lengths):,} steps, the limit is {MOST_STEPS:,}; cut it")
    rows = [
        [number_of(value, f"{where}: step {step} of {name}") for value in values]
        for step, values in enumerate(zip(*channels, strict=True), 1)
    ]
    while len(rows) > 1 and all(value is None for value in rows[-1]):  # filled up to the length of others
        rows.pop()
    return whole(rows)
