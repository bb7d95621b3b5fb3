"""The answer of a forecaster: for each channel the mean and quantiles of the next steps."""

from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, Field

from regard.tasks.prediction import Prediction

MOST_NAMED = 8
"""Channels that the text of a forecast tells of."""


class ChannelForecast(BaseModel):
    name: str
    past: list[float | None] = Field(description="the last steps that were read")
    mean: list[float]
    quantiles: dict[str, list[float]] = Field({}, description="by level; the outermost two are a band")


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
        n = len(channels[0].mean)
        when = f"{times[0]} to {times[-1]}" if times else f"the next {n:,} step{'s' * (n > 1)}"
        return cls(
            text=f"{f'{id}, ' if id else ''}{when}: {'; '.join(said)}{more}",
            id=id,
            times=list(times),
            past_times=list(past_times),
            channels=list(channels),
            explained=explained,
        )


def _range(values: Sequence[float]) -> str:
    return f"{values[0]:.4g}" if len(values) == 1 else f"{values[0]:.4g} … {values[-1]:.4g}"
