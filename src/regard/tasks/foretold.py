"""The answer of a forecaster: for each channel the mean and quantiles of the next steps."""

from collections.abc import Sequence
from typing import Any, Self

from pydantic import BaseModel, Field

from regard.tasks.foretold_svg import Curve, draw
from regard.tasks.prediction import Prediction

MOST_NAMED = 8
"""Channels that the text of a forecast tells of."""


class ChannelForecast(BaseModel):
    name: str
    past: list[float | None] = Field(description="the last steps that were read")
    mean: list[float]
    quantiles: dict[str, list[float]] = Field({}, description="by level; the outermost two are a band")

    @property
    def band(self) -> tuple[list[float], list[float]] | None:
        """The outermost quantiles, if there are any."""
        quantiles = [*self.quantiles.values()]
        return (quantiles[0], quantiles[-1]) if quantiles else None

    def cells(self, step: int) -> list[tuple[str, float]]:
        """What a row of a table has of one step."""
        levels = [(f"{self.name}_{level}", values[step]) for level, values in self.quantiles.items()]
        return [(self.name, self.mean[step]), *levels]


class SeriesForecast(Prediction):
    id: str = Field("", description="name of the series")
    times: list[str] = Field([], description="of the steps foretold; none where there is no knowing them")
    past_times: list[str] = Field([], description="of the steps before them that are answered too")
    channels: list[ChannelForecast]
    explained: str = Field("", exclude=True)
    """The channel that an explanation is about."""

    @classmethod
    def of(
        cls,
        channels: Sequence[ChannelForecast],
        *,
        id: str,
        times: Sequence[str],
        past_times: Sequence[str],
        explained: str,
    ) -> Self:
        said = [f"{one.name} {_range(one.mean)}" for one in channels[:MOST_NAMED]]
        more = f"; {len(channels) - MOST_NAMED:,} channels more" if len(channels) > MOST_NAMED else ""
        plain = cls(
            text="",
            id=id,
            times=list(times),
            past_times=list(past_times),
            channels=list(channels),
            explained=explained,
        )
        return plain.model_copy(update={"text": f"{plain.title}: {'; '.join(said)}{more}"})

    def rows(self) -> list[dict[str, Any]]:
        """A row for each step: its time, or its number; the mean of each channel, and its quantiles."""
        n = len(self.channels[0].mean)
        when: list[dict[str, Any]] = [{"time": at} for at in self.times]
        when = when or [{"step": step} for step in range(1, n + 1)]
        series = {"series": self.id} if self.id else {}
        return [
            {**series, **at, **{name: cell for one in self.channels for name, cell in one.cells(place)}}
            for place, at in enumerate(when)
        ]

    def drawing(self) -> str:
        curves = [Curve(one.name, one.past, one.mean, *(one.band or ([], []))) for one in self.channels]
        n_past, n = len(self.channels[0].past), len(self.channels[0].mean)
        marks = [f"−{n_past}", "+1", f"+{n}"]
        if self.times and self.past_times:
            marks = [self.past_times[0], self.times[0], self.times[-1]]
        levels = [*self.channels[0].quantiles]
        band = f"{100 * (float(levels[-1]) - float(levels[0])):.3g} %" if levels else ""
        return draw(self.title, curves, marks, band)

    @property
    def title(self) -> str:
        """The series, and the time that is foretold."""
        n = len(self.channels[0].mean)
        when = f"{self.times[0]} to {self.times[-1]}" if self.times else f"the next {n:,} step{'s' * (n > 1)}"
        return f"{self.id}, {when}" if self.id else when


def _range(values: Sequence[float]) -> str:
    return f"{values[0]:.4g}" if len(values) == 1 else f"{values[0]:.4g} … {values[-1]:.4g}"
