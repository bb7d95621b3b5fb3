"""forecast: what comes next in a series, for every step of a horizon: its mean, and quantiles around it.

Every window of a training series is an example: `look_back` steps that are read, `horizon` steps that are
foretold. What is scored are the windows of later steps, one for each step at which a forecast can be made
(rolling origin). Models work on the scale of the training data, so losses and MSE are comparable over
channels; predictions are on the scale of the files.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, Field, field_validator
from torch import Tensor, nn

from regard.baselines import Baseline
from regard.baselines.naive import LastValue, SeasonalNaive
from regard.config import Config
from regard.data.cache import Arrays, Examples
from regard.data.example import Example
from regard.data.splits import SHARES, Borders, HoldOut
from regard.data.windows import Windows
from regard.errors import RecipeError, did_you_mean
from regard.fields.axis import Axis
from regard.fields.field import Coded
from regard.fields.field import Field as AnyField
from regard.fields.horizon import window_ahead
from regard.fields.series import Series, SeriesSettings
from regard.fields.steps import bridge, restlessness
from regard.files.measurements import Measured, Stretch
from regard.files.row import Row
from regard.layers.inputs import Inputs
from regard.metrics.calibration import UNCALIBRATED, Calibration
from regard.metrics.forecast import Floats, ForecastTally, error_sums
from regard.metrics.metric import Metric
from regard.models.widths import Widths
from regard.tasks.forecast_data import FORECAST
from regard.tasks.prediction import ChannelForecast, SeriesForecast
from regard.tasks.shared import moved
from regard.tasks.task import (
    Axes,
    Fields,
    Loss,
    Part,
    Picture,
    Task,
    TaskSettings,
    layer_of,
)
from regard.tasks.task_data import TaskData
from regard.text.tokenizer import Tokenizer

WINDOWS_TOGETHER = 256
PARTS = 4
"""Parts of the horizon that are scored by themselves."""
MOST_CALIBRATED = 1000
"""Validation windows that quantiles are calibrated on."""
HALF_LIFE = 0.5
"""Share of the validation windows after which an older one counts half."""
UNITS = 24
"""Runs of steps that a horizon is explained in, at most."""


class SeriesFields(Config):
    series: SeriesSettings = SeriesSettings()


class ForecastConfig(TaskSettings):
    """Measurements in, their next steps with a band out."""

    kind: Literal["forecast"] = "forecast"
    roles: ClassVar[tuple[str, ...]] = ("series",)
    inputs: ClassVar[tuple[str, ...]] = ("series",)
    fields: SeriesFields = Field(
        SeriesFields(), description="what the columns of measurements are: a table `[fields.series]`"
    )
    look_back: int = Field(96, ge=1, description="steps that are read")
    horizon: int = Field(24, ge=1, description="steps that are foretold")
    loss: Literal["mse", "mae"] = Field("mse", description="of the mean: squared or absolute errors")
    quantiles: tuple[float, ...] = Field(
        (0.1, 0.5, 0.9),
        description="also foretold, and calibrated on validation data; the outermost are a band",
    )
    split: tuple[float, float, float] = Field(
        SHARES,
        description="of every series, for training, validation and test, in the order of time: shares, or "
        "numbers of steps",
    )

    @field_validator("quantiles")
    @classmethod
    def _in_order(cls, levels: tuple[float, ...]) -> tuple[float, ...]:
        if sorted({*levels}) != list(levels) or not all(0 < level < 1 for level in levels):
            raise ValueError("quantiles lie between 0 and 1, the smallest first")
        if len(levels) == 1:
            raise ValueError("give two quantiles at least, the ends of a band, or none")
        return levels

    @field_validator("split")
    @classmethod
    def _shares_or_steps(cls, parts: tuple[float, float, float]) -> tuple[float, float, float]:
        whole = all(part == int(part) for part in parts)
        if min(parts) <= 0 or not (whole or sum(parts) <= 1 + 1e-9):
            raise ValueError("give three shares that add up to 1 at most, or three numbers of steps")
        return parts

    @property
    def max_length(self) -> int:
        return self.look_back

    @property
    def series(self) -> Series:
        """The unfitted field."""
        return Series(self.fields.series)

    @property
    def unfitted(self) -> Fields:
        return self.asked

    @property
    def asked(self) -> Mapping[str, AnyField]:
        return {"series": self.series}

    @property
    def measured(self) -> Measured:
        return self.series.columns

    @property
    def hold_out(self) -> HoldOut:
        if self.split[0] >= 1:
            return Borders(self.look_back, rows=tuple(map(int, self.split)))
        return Borders(self.look_back, shares=self.split)


@dataclass(frozen=True)
class WindowBatch:
    inputs: Inputs
    target_BCY: Tensor
    """On the scale of the training data; NaN where nobody knows."""
    level_BC1: Tensor
    spread_BC1: Tensor
    """What puts a forecast back on the scale of the files."""
    n_quantiles: int
    examples: tuple[Example, ...]
    channel: int = 0
    """Of a replay: the channel that is explained."""

    @cached_property
    def counts(self) -> dict[str, int]:
        n = int((~self.target_BCY.isnan()).sum())
        return {"values": n} | ({"quantiles": n * self.n_quantiles} if self.n_quantiles else {})

    def to(self, device: torch.device) -> Self:
        return replace(
            self,
            inputs=moved(self.inputs, device),
            target_BCY=self.target_BCY.to(device),
            level_BC1=self.level_BC1.to(device),
            spread_BC1=self.spread_BC1.to(device),
        )


class Forecast(Task):
    kind: ClassVar[str] = "forecast"
    data: ClassVar[TaskData] = FORECAST
    says: ClassVar[str] = "Series in, their next steps out, with quantiles."
    settings: ClassVar[type[Any]] = ForecastConfig
    prediction: ClassVar[type[BaseModel]] = SeriesForecast
    models: ClassVar[tuple[str, ...]] = ("forecaster", "nlinear", "dlinear", "rnn_forecaster")
    called: ClassVar[str] = "a forecaster"
    cut: ClassVar[str] = "only the end was read"
    tabular: ClassVar[bool] = True
    options: ClassVar[tuple[str, ...]] = ("horizon", "channel")
    layout: ClassVar[type[Examples]] = Windows
    baselines: ClassVar[tuple[type[Baseline], ...]] = (LastValue, SeasonalNaive)
    metric = Metric("mse", higher=False)

    def __init__(
        self,
        config: ForecastConfig,
        series: Series,
        calibration: Calibration = UNCALIBRATED,
        *,
        shown: int | None = None,
        channel: str | None = None,
    ) -> None:
        """`shown` steps of the horizon are answered, all by default; `channel` is the one explained."""
        self.config, self.series, self.calibration = config, series, calibration
        self.shown, self.channel = shown or config.horizon, channel or series.channels[0]
        target = {"horizon": config.horizon, "quantiles": len(config.quantiles)}
        self.widths = Widths({**series.width, "steps": config.look_back}, target)

    @property
    def look_back(self) -> int:
        return self.config.look_back

    @property
    def horizon(self) -> int:
        return self.config.horizon

    @property
    def max_batch_rows(self) -> int:
        return WINDOWS_TOGETHER

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {}

    @classmethod
    def fit(cls, config: ForecastConfig, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        series = config.series
        return cls(config, series.fit(series.parse(row.cells["series"], row.where) for row in rows))

    def calibrated(self, model: nn.Module, valid: Sequence[Any], device: torch.device) -> Self:
        """With quantiles that are as often above the values of the validation data as they should be."""
        if not self.config.quantiles or not isinstance(valid, Windows) or not len(valid):
            return self
        every = range(0, len(valid), -(-len(valid) // MOST_CALIBRATED))
        apart: list[Tensor] = []
        for begin in range(0, len(every), WINDOWS_TOGETHER):
            batch = self.collate([valid[i] for i in every[begin : begin + WINDOWS_TOGETHER]]).to(device)
            with torch.no_grad():
                quantiles_BCYQ = model(batch.inputs)[..., 1:]
            apart_BCYQ = (batch.target_BCY[..., None] - quantiles_BCYQ) / self._deviation(batch)
            apart.append(apart_BCYQ.float().cpu())
        weights_B = 0.5 ** (np.array([valid.age(i) for i in every]) / HALF_LIFE)
        found = Calibration.of(torch.cat(apart).numpy(), self.config.quantiles, weights_B)
        return type(self)(self.config, self.series, found, shown=self.shown, channel=self.channel)

    def _deviation(self, batch: WindowBatch) -> Tensor:
        """deviation_BC11 of the past of each window, in those of the training data: what calibration is
        measured in.
        """
        steps_BTC = batch.inputs["steps"].cpu().numpy()
        deviation_BC = restlessness(steps_BTC, self.widths.input["deviation"])
        return torch.from_numpy(deviation_BC[..., None, None]).to(batch.target_BCY.device)

    def save(self, folder: Path) -> None:
        self.series.save(folder)
        self.calibration.save(folder)

    @classmethod
    def load(cls, config: ForecastConfig, folder: Path) -> Self:
        series = config.series.load(folder)
        shape = len(series.channels), len(config.quantiles)
        return cls(config, series, Calibration.load(folder, shape))

    def with_settings(self, **changes: Any) -> Self:
        """The same task with a shorter horizon, or that explains another channel."""
        if unknown := [name for name in changes if name not in self.options]:
            raise RecipeError(f"{unknown[0]}: {self.called} can be asked with horizon and channel")
        shown, channel = str(changes.get("horizon", self.shown)), str(changes.get("channel", self.channel))
        if not (shown.isdecimal() and 1 <= int(shown) <= self.horizon):
            raise RecipeError(
                f"horizon={shown}: this model foretells 1 to {self.horizon:,} steps; to see further, train "
                "with a larger task.horizon"
            )
        if channel not in self.series.channels:
            nearest = did_you_mean(channel, self.series.channels)
            raise RecipeError(f"channel={channel}: the model has no such channel{nearest}")
        return type(self)(self.config, self.series, self.calibration, shown=int(shown), channel=channel)

    def probe(self) -> dict[str, Any]:
        return {"series": self.series.sampled(self.look_back, self.horizon)}

    def asked(self, values: Iterable[Any], first: int = 1) -> list[Row]:
        """Rows whose future is unknown."""
        return [
            replace(row, cells={"series": Stretch(row.cells["series"] | {"asked": True})})
            for row in super().asked(values, first)
        ]

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        """Whole series to cut windows from; of what is asked, the window behind its end."""
        values = [self.series.parse(row.cells["series"], row.where) for row in rows]
        return [
            Example(row, *(self._ahead(row, coded) if row.cells["series"].get("asked") else coded))
            for row, coded in zip(rows, self.series.encode(values), strict=True)
        ]

    def _ahead(self, row: Row, coded: Coded) -> Coded:
        where = f"input {row.line}" if row.file == "input" else row.where
        return window_ahead(self.series, coded, self.look_back, self.horizon, where)

    def unusable(self, example: Example) -> str | None:
        """Windows are cut from all that there is."""
        return None

    def is_answerable(self, example: Example) -> bool:
        return bool(np.isfinite(example.arrays["steps"]).any())

    def size(self, example: Example) -> tuple[int]:
        return (self.look_back,)

    def revive(self, row: Row, kept: Arrays) -> Example:
        """A window: the past, and the future beside it."""
        past, future = kept["steps"][: self.look_back], kept["steps"][self.look_back :]
        return Example(row, {**kept, "steps": past, "future": future})

    def collate(self, examples: Sequence[Example]) -> WindowBatch:
        steps_BTC: Floats = np.stack([np.asarray(one.arrays["steps"], np.float32) for one in examples])
        future_BYC = np.stack([np.asarray(one.arrays["future"], np.float32) for one in examples])
        level_BC, spread_BC = self.series.scales(steps_BTC)
        if self.series.config.scale == "series":
            steps_BTC = (steps_BTC - level_BC[:, None]) / spread_BC[:, None]
        target_BYC = (future_BYC - level_BC[:, None]) / spread_BC[:, None]
        inputs = {"steps": torch.from_numpy(steps_BTC)}
        if "known" in examples[0].arrays:
            known = [np.asarray(one.arrays["known"], np.float32) for one in examples]
            inputs["known"] = torch.from_numpy(np.stack(known))
        return WindowBatch(
            inputs,
            torch.from_numpy(np.ascontiguousarray(target_BYC.transpose(0, 2, 1))),
            torch.from_numpy(level_BC[..., None]),
            torch.from_numpy(spread_BC[..., None]),
            len(self.config.quantiles),
            tuple(examples),
        )

    def loss(self, model: nn.Module, batch: WindowBatch) -> Loss:
        forecast_BCYJ = model(batch.inputs)
        known_BCY = ~batch.target_BCY.isnan()
        target_BCY = batch.target_BCY.nan_to_num(0.0)
        error_BCY = (forecast_BCYJ[..., 0] - target_BCY) * known_BCY
        point = error_BCY.abs().sum() if self.config.loss == "mae" else error_BCY.square().sum()
        parts, shown = {"values": Part(point)}, {"values": point.detach()}
        if self.config.quantiles:
            levels_Q = forecast_BCYJ.new_tensor(self.config.quantiles)
            above_BCYQ = (target_BCY[..., None] - forecast_BCYJ[..., 1:]) * known_BCY[..., None]
            pinball = torch.maximum(levels_Q * above_BCYQ, (levels_Q - 1) * above_BCYQ).sum()
            parts["quantiles"], shown["quantiles"] = Part(pinball), pinball.detach()
        return Loss(parts, shown)

    def forecasts(self, model: nn.Module, batch: WindowBatch) -> Tensor:
        """forecast_BCYJ on the scale of the files; quantiles are calibrated and do not cross."""
        forecast_BCYJ: Tensor = model(batch.inputs).float()
        point_BCY1, quantiles_BCYQ = forecast_BCYJ[..., :1], forecast_BCYJ[..., 1:]
        if self.calibration.offsets:
            offsets_CQ = forecast_BCYJ.new_tensor(self.calibration.offsets)
            quantiles_BCYQ = quantiles_BCYQ + offsets_CQ[:, None] * self._deviation(batch)
        together_BCYJ = torch.cat([point_BCY1, quantiles_BCYQ.sort(-1).values], -1)
        return together_BCYJ * batch.spread_BC1[..., None] + batch.level_BC1[..., None]

    def measure(self, model: nn.Module, batch: WindowBatch, *, thorough: bool) -> ForecastTally:
        return self.tally(batch.examples, [*self.forecasts(model, batch).cpu().numpy()])

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> ForecastTally:
        """The tally of forecasts (channels × steps × the mean, and perhaps quantiles) in the units of the
        files.
        """
        cuts = np.unique(np.linspace(0, self.horizon, PARTS + 1).round().astype(int))
        found = ForecastTally(
            self.series.channels,
            tuple(f"steps {begin + 1}–{end}" for begin, end in pairwise(cuts.tolist())),
            self.config.loss,
            max(self.horizon, self.series.season),
        )
        for one, forecast_CYJ in zip(examples, answers, strict=True):
            _, spread_BC = self.series.scales(one.arrays["steps"][None])
            sums_CYS = error_sums(
                forecast_CYJ,
                one.arrays["future"].T,
                spread_BC[0],
                np.array(self.series.naive_error),
                self.config.quantiles,
            )
            found.origins.append(int(one.arrays["origin"][0]))
            found.by_channel.append(sums_CYS.sum(1).astype(np.float32))
            found.by_part.append(np.add.reduceat(sums_CYS.sum(0), cuts[:-1]))
        return found

    def predict(self, model: nn.Module, batch: WindowBatch) -> Iterator[tuple[int, SeriesForecast]]:
        with torch.inference_mode():
            forecast_BCYJ = self.forecasts(model, batch)[:, :, : self.shown].cpu().numpy()
        yield from enumerate(map(self._answer, batch.examples, forecast_BCYJ))

    def _answer(self, example: Example, forecast_CYJ: Floats) -> SeriesForecast:
        times, past = example.notes.get("ahead") or [], example.notes.get("past")
        levels = [f"{level:g}" for level in self.config.quantiles]
        n_past = min(self.look_back, max(2 * self.shown, self.series.season))
        steps_TC = example.arrays["steps"][-n_past:]
        written = self.series.clock.written
        channels = [
            ChannelForecast(
                name=name,
                past=[None if np.isnan(value) else _short(value) for value in steps_TC[:, number]],
                mean=[*map(_short, forecast_YJ[:, 0])],
                quantiles={level: [*map(_short, forecast_YJ[:, 1 + at])] for at, level in enumerate(levels)},
            )
            for number, (name, forecast_YJ) in enumerate(zip(self.series.channels, forecast_CYJ, strict=True))
        ]
        return SeriesForecast.of(
            channels,
            id=example.notes.get("id", ""),
            times=[written(int(at)) for at in times[: self.shown]],
            past_times=[] if past is None else [written(int(at)) for at in past[-n_past:]],
            explained=self.channel,
        )

    def samples(
        self, model: nn.Module, examples: Sequence[Example], device: torch.device
    ) -> list[dict[str, str]]:
        batch = self.collate(examples).to(device)
        forecast_BCYJ = self.forecasts(model, batch).cpu().numpy()
        return [
            {
                "input": f"{self.series.channels[0]}: … {_few(one.arrays['steps'][-SHOWN:, 0])}",
                "expected": f"{_few(one.arrays['future'][:SHOWN, 0])} …",
                "answer": f"{_few(forecast_CYJ[0, :SHOWN, 0])} …",
            }
            for one, forecast_CYJ in zip(examples, forecast_BCYJ, strict=True)
        ]

    def force(self, example: Example, prediction: SeriesForecast) -> WindowBatch:
        channel = self.series.channels.index(prediction.explained)
        return replace(self.collate([example]), channel=channel)

    def replay(self, model: nn.Module, batch: WindowBatch) -> Tensor:
        """The mean forecast of the channel that is explained, in each run of the horizon, on the scale of
        the training data.
        """
        forecast_BY = model(batch.inputs)[:, batch.channel, : self.shown, 0]
        return torch.stack([forecast_BY[:, begin:end].mean(1) for begin, end in self._runs()], 1)

    def _runs(self) -> list[tuple[int, int]]:
        size = -(-self.shown // UNITS)
        return [(begin, min(begin + size, self.shown)) for begin in range(0, self.shown, size)]

    def leave_out(self, batch: WindowBatch, axis: Axis, units: Sequence[int]) -> WindowBatch:
        """A straight line between its neighbours in the place of each of these runs of steps."""
        assert axis.spans is not None
        n, device = len(units), batch.target_BCY.device
        steps_BTC = np.repeat(batch.inputs["steps"].cpu().numpy(), n, 0)
        for steps_TC, unit in zip(steps_BTC, units, strict=True):
            bridge(steps_TC, *axis.spans[unit])
        inputs = {name: tensor.expand(n, *tensor.shape[1:]) for name, tensor in batch.inputs.items()}
        inputs["steps"] = torch.from_numpy(steps_BTC).to(device)
        return replace(
            batch,
            inputs=inputs,
            target_BCY=batch.target_BCY.expand(n, -1, -1),
            level_BC1=batch.level_BC1.expand(n, -1, -1),
            spread_BC1=batch.spread_BC1.expand(n, -1, -1),
            examples=batch.examples * n,
        )

    def axes(self, example: Example, prediction: SeriesForecast) -> Axes:
        n = self.look_back
        spans = tuple((step, step + 1) for step in range(n))
        past = Axis("past", tuple(map(self._lag, range(n, 0, -1))), unit="step", spans=spans)
        ahead = Axis("ahead", tuple(f"+{step}" for step in range(1, self.shown + 1)), unit="step")
        number = self.series.channels.index(prediction.explained)
        by_name = {"past": past, "ahead": ahead.covered(self._runs(), "step")}
        return Axes(by_name, left_out="past", answer="ahead", site=_site, row=number, quantity=DEVIATIONS)

    def _lag(self, lag: int) -> str:
        """How many steps ago; whole seasons ago also in words."""
        seasons, rest = divmod(lag, self.series.season)
        if rest or self.series.season == 1:
            return f"−{lag}"
        span = self.series.clock.span(lag).partition("(")[2].rstrip(")")
        return f"−{lag} ({span or f'{seasons} seasons'})"

    def pictures(self, model: nn.Module, batch: WindowBatch) -> list[Picture]:
        """What each patch adds to the forecast, where the last map is linear."""
        contributions: Any = getattr(model, "contributions", None)
        if contributions is None:
            return []
        shares_YN = contributions(batch.inputs)[0, batch.channel, : self.shown].abs()
        parts_UN = torch.stack([shares_YN[begin:end].mean(0) for begin, end in self._runs()])
        weights_UN = parts_UN / parts_UN.sum(1, keepdim=True).clamp(min=1e-12)
        return [
            Picture("contributions", "contributions: horizon → past", weights_UN, "ahead", "past", rated=True)
        ]


DEVIATIONS = (
    "the forecast of those steps, in deviations of the training data",
    "该时段预测值（以训练数据的标准差为单位）",
)
SHOWN = 4
"""Steps of a sample."""


def _short(value: Any) -> float:
    """A number with as many digits as single precision has."""
    return float(f"{value:.7g}")


def _few(values: Floats) -> str:
    return " ".join(f"{value:.4g}" for value in values)


def _site(site: str) -> tuple[str, str, str]:
    layer = layer_of(site)
    if layer is None:
        return "attention: horizon → past", "ahead", "past"
    return f"encoder layer {layer}: {{unit}} → {{unit}}", "past", "past"
