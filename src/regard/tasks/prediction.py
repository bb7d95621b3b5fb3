"""Answers: one class is the Python value, the JSON and the schema of the server."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

Rounded = Annotated[float, PlainSerializer(lambda value: round(value, 4), return_type=float)]
"""A probability or a score, which JSON gets with four digits."""


Ranked = tuple[str, float | None]
"""An answer, and its score or probability."""


class Curve(NamedTuple):
    """One curve of an answer that can be drawn."""

    name: str
    past: Sequence[float | None]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    """The ends of the band; empty where there is none."""


class Curves(NamedTuple):
    """An answer that can be drawn."""

    title: str
    curves: Sequence[Curve]
    marks: Sequence[str]
    """The beginning of the past, and the first and last of the future."""
    band: str
    """Share of what comes that the band should hold."""


class Prediction(BaseModel):
    model_config = ConfigDict(frozen=True)

    text: str
    """Text that a user reads."""
    input_cut: bool = Field(False, description="not all of the input was read, as it was too long")

    @property
    def cut(self) -> bool:
        return self.input_cut

    def ranked(self) -> list[Ranked]:
        """The answers that it chose from, the best first; itself alone where it chose from none."""
        return [(self.text, None)]

    def rows(self) -> list[dict[str, Any]] | None:
        """The rows of an answer that is a table by itself."""
        return None

    def drawing(self) -> Curves | None:
        """The curves of an answer that can be drawn."""
        return None

    def as_form(self, form: str, name: str, number: int) -> str:
        """The answer in one of the forms of its task; `name` is what its input is called."""
        return self.text

    def to_json(self) -> dict[str, Any]:
        """Plain values; that nothing was cut goes without saying."""
        return self.model_dump(mode="json", exclude=None if self.input_cut else {"input_cut"})


def by_probability(probabilities: Mapping[str, float]) -> list[Ranked]:
    """Labels, the likeliest first."""
    names = sorted(probabilities, key=lambda name: -probabilities[name])
    return [(name, probabilities[name]) for name in names]


class Answer(BaseModel):
    """An answer of the server."""

    text: str


OTHERS: Any = Field((), description="the rest of the n best")


class Written(Prediction):
    """A text that a model wrote: a translation, a summary, a reply."""

    score: Rounded | None = Field(
        None,
        description="log-probability, divided as length_penalty says; absent unless scores is set",
    )
    others: tuple["Written", ...] = OTHERS
    ids: tuple[int, ...] = Field((), exclude=True)
    steps: tuple[float, ...] = Field((), exclude=True)
    """Log-probabilities of its tokens and of the end."""

    def ranked(self) -> list[Ranked]:
        answers: tuple[Written, ...] = (self, *self.others)
        return [(one.text, None if one.score is None else round(one.score, 4)) for one in answers]

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is not there, or goes without saying, is left out."""
        return self.model_dump(mode="json", exclude_defaults=True)


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
        """Cells of one step in a row of a table."""
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

    def drawing(self) -> Curves:
        curves = [Curve(one.name, one.past, one.mean, *(one.band or ([], []))) for one in self.channels]
        n_past, n = len(self.channels[0].past), len(self.channels[0].mean)
        marks = [f"−{n_past}", "+1", f"+{n}"]
        if self.times and self.past_times:
            marks = [self.past_times[0], self.times[0], self.times[-1]]
        levels = [*self.channels[0].quantiles]
        band = f"{100 * (float(levels[-1]) - float(levels[0])):.3g} %" if levels else ""
        return Curves(self.title, curves, marks, band)

    @property
    def title(self) -> str:
        """The series, and the time that is foretold."""
        n = len(self.channels[0].mean)
        when = f"{self.times[0]} to {self.times[-1]}" if self.times else f"the next {n:,} step{'s' * (n > 1)}"
        return f"{self.id}, {when}" if self.id else when


def _range(values: Sequence[float]) -> str:
    return f"{values[0]:.4g}" if len(values) == 1 else f"{values[0]:.4g} … {values[-1]:.4g}"
