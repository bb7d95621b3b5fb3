"""What every answer has: one class is the Python value, the JSON and the schema of the server."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

Rounded = Annotated[float, PlainSerializer(lambda value: round(value, 4), return_type=float)]
"""A probability or a score, which JSON gets with four digits."""


Ranked = tuple[str, float | None]
"""An answer, and its score or probability."""


class Prediction(BaseModel):
    model_config = ConfigDict(frozen=True)

    text: str
    """What a user reads."""
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

    def drawing(self) -> str | None:
        """A picture (SVG) of an answer that can be drawn."""
        return None

    def to_json(self) -> dict[str, Any]:
        """Plain values; that nothing was cut goes without saying."""
        return self.model_dump(mode="json", exclude=None if self.input_cut else {"input_cut"})


def by_probability(probabilities: Mapping[str, float]) -> list[Ranked]:
    """Labels, the likeliest first."""
    names = sorted(probabilities, key=lambda name: -probabilities[name])
    return [(name, probabilities[name]) for name in names]


class Answer(BaseModel):
    """What every answer of the server has."""

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
