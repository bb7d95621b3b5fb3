"""What answers look like, as it is published with OpenAPI."""

from functools import reduce
from operator import or_
from typing import Any

from pydantic import BaseModel, Field, create_model

from regard.tasks import TASKS, Task


class Axis(BaseModel):
    name: str
    labels: list[str]
    unit: str = Field(description="what each label stands for: a token, a label, a patch")
    grid: tuple[int, int] | None = Field(None, description="rows and columns of units that lie in a plane")
    seconds: list[float] | None = Field(None, description="when each unit begins, of units that lie in time")


class AttentionMap(BaseModel):
    site: str
    title: str
    holds: str = Field(description="weight of attention, measured share of what changed, or probability")
    heads: int
    rows: int = Field(description="which of the axes")
    columns: int = Field(description="which of the axes")
    weights: list[list[list[float]]] | None = Field(None, description="by head, row and column")
    packed: str | None = None


class Attention(BaseModel):
    task: str
    model: str
    input: str
    output: str
    main: int = Field(description="which of the maps says most")
    trust: dict[str, Any] | None = Field(description="how far the maps may be trusted, measured")
    axes: list[Axis]
    maps: list[AttentionMap]
    fullScale: int


def _answer(task: type[Task]) -> Any:
    """Its answer, which may come with what was attended to."""
    return create_model(
        task.prediction.__name__, __base__=task.prediction, attention=(Attention | None, None)
    )


def _answers(answer: Any) -> type[BaseModel]:
    return create_model(f"{answer.__name__}s", model=(str, ...), answers=(list[answer], ...))


ANSWER = {name: _answer(task) for name, task in TASKS.items()}
ANSWERS = {name: _answers(answer) for name, answer in ANSWER.items()}
"""What is sent for the texts of a request, by task."""
_ANY: Any = reduce(or_, ANSWER.values())
Explained = create_model("Explained", model=(str, ...), answer=(_ANY, ...))


class AnyAnswers(BaseModel):
    model: str
    answers: list[Any]


class Input(BaseModel):
    name: str
    widget: str = Field(description="what a page asks for it with: text, json, image, file …")
    accepts: str = Field(description="which files it may be, as HTML writes it (image/*)")
    file: bool = Field(description="whether it is a file, in base64 or uploaded")


class Model(BaseModel):
    name: str
    task: str
    description: str
    ready: bool
    max_length: int = Field(description="tokens of a text that are read")
    heads: int = Field(description="attention heads that can be looked at")
    listens: bool = Field(description="whether it hears sound while it comes in, at /v1/listen")
    decode: dict[str, Any] | None = Field(description="how it searches unless told")
    inputs: list[Input] = Field(description="what it is asked with")


class Models(BaseModel):
    models: list[Model]


class Choice(BaseModel):
    item: str
    title: str
    category: str


class Choices(BaseModel):
    model: str
    items: list[Choice]


class State(BaseModel):
    status: str


class Fault(BaseModel):
    code: str
    message: str
    limit: float | None = None


class Failure(BaseModel):
    error: Fault
