"""What may be asked: checked before anything else is done, and published as OpenAPI.

Requests are strict: a number in quotes is not a number. A search has the names and bounds of `DecodeConfig`,
all of them optional, since what is left out is as the model's recipe says.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, create_model, model_validator

from regard.decode import DecodeConfig
from regard.serve.asked import Given
from regard.serve.limits import Limits
from regard.tasks import TASKS, Task

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
PACKED: Any = Field(
    False, description="weights in base64: zlib, all low bytes before all high bytes, of weight × fullScale"
)
NAMES = tuple(dict.fromkeys(name for task in TASKS.values() for name in task.asks()))
"""Of all fields that can hold what is asked."""


class Ask(BaseModel):
    model_config = STRICT

    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="name of the model; not needed when only one can be meant"
    )

    def given(self) -> dict[str, Given]:
        """Every field that holds what is asked."""
        return {name: getattr(self, name) for name in NAMES if name in type(self).model_fields}


class Decoding(Ask):
    decode: BaseModel

    @property
    def settings(self) -> dict[str, Any]:
        given: dict[str, Any] = self.decode.model_dump(exclude_unset=True)
        return given


class PlainAsk(Ask):
    """What is asked comes in fields of their own, named by the task."""

    attention: bool = Field(False, description="answer with what was attended to, as /v1/explain does")

    @property
    def settings(self) -> dict[str, Any]:
        return {}


class QuestionAsk(PlainAsk):
    """What is asked is no text, and settings stand beside it, named by the task."""

    takes: ClassVar[str]
    packed: bool = PACKED

    def questions(self) -> list[Any]:
        given = getattr(self, self.takes)
        return given if isinstance(given[0], list) else [given]

    @property
    def settings(self) -> dict[str, Any]:
        given = self.model_fields_set - QuestionAsk.model_fields.keys() - {self.takes}
        return {name: getattr(self, name) for name in sorted(given)}


class PairingAsk(PlainAsk):
    entities: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="of raw texts: name of the tagger that finds their entities, served beside it"
    )


class SearchAsk(Decoding, PlainAsk):
    stream: bool = Field(False, description="send the answer as server-sent events while it is written")


class ReplyAsk(SearchAsk):
    most: ClassVar[int]
    """Characters of a conversation."""
    text: str | list[str] | None
    turns: list[str] | None

    @model_validator(mode="after")
    def _is_one_conversation(self) -> Self:
        if (self.text is None) == (self.turns is None):
            raise ValueError("give either text or turns")
        if sum(map(len, self.turns or ())) > self.most:
            raise ValueError(f"turns may have {self.most} characters together; leave out the oldest")
        return self

    def given(self) -> dict[str, Given]:
        return super().given() | ({} if self.turns is None else {"text": as_lines(self.turns)})


class AnyAsk(Ask):
    """What is asked of a model of any task, by the names of its inputs."""

    inputs: dict[str, JsonValue] | list[dict[str, JsonValue]]
    attention: bool = Field(False, description="answer with what was attended to, as /v1/explain does")
    packed: bool = Field(False, description="weights in base64, as /v1/explain sends them")
    files: list[Annotated[str, StringConstraints(max_length=200)]] = Field(
        [],
        max_length=16,
        description="inputs that are whole files, in base64; pictures and recordings always are",
    )
    decode: dict[str, JsonValue] = Field(default_factory=dict, description="how to search, if it searches")

    def given(self) -> list[dict[str, Any]]:  # type: ignore[override]
        return self.inputs if isinstance(self.inputs, list) else [self.inputs]


class ExplainedAsk(Decoding):
    packed: bool = PACKED


def as_lines(turns: list[str]) -> str:
    """A conversation as one text: a turn a line."""
    return "\n".join(" ".join(turn.split()) for turn in turns)


@dataclass(frozen=True)
class Requests:
    of_task: dict[str, type[PlainAsk]]
    """What is sent to the route of each."""
    explain: type[ExplainedAsk]

    @classmethod
    def within(cls, limits: Limits) -> Self:
        text: Any = Annotated[str, StringConstraints(min_length=1, max_length=limits.characters)]
        texts: Any = Annotated[list[text], Field(min_length=1, max_length=limits.texts)]
        search = _search(limits)
        how = {"decode": (search, Field(default_factory=search, description="how to search"))}
        wanted = {name: (text | None, Field(None, description="if the model needs it")) for name in NAMES}
        explain: Any = {**how, **wanted}
        return cls(
            {name: _ask(task, limits, text, texts, how) for name, task in TASKS.items()},
            create_model("ExplainAsk", __base__=ExplainedAsk, **explain),
        )


def _ask(task: type[Task], limits: Limits, text: Any, texts: Any, how: dict[str, Any]) -> type[PlainAsk]:
    fields: Any = dict(how) if task.searches else {}
    if task.converses:
        said = Field(None, description="a conversation, a turn a line; or a list of such")
        turns = Field(None, description="instead of it: the turns of a conversation")
        fields |= {"text": (text | texts | None, said), "turns": (texts | None, turns)}
        reply = create_model("ReplyAsk", __base__=ReplyAsk, **fields)
        reply.most = limits.characters
        return reply
    if task.takes:
        return _question(task, limits, text)
    base = SearchAsk if task.searches else PairingAsk if task.pairs_entities else PlainAsk
    fields |= {name: (text | texts, Field(description=f"a {name}, or a list")) for name in task.asks()}
    return create_model(f"{task.prediction.__name__}Ask", __base__=base, **fields)


def _question(task: type[Task], limits: Limits, text: Any) -> type[QuestionAsk]:
    config = task.settings
    one: Any = config().question[task.takes].request(limits)
    several: Any = Annotated[list[one], Field(min_length=1, max_length=limits.texts)]
    fields: Any = {task.takes: (one | several, Field(description=f"{task.takes}, or a list of such"))}
    for name in task.request_settings:
        known = config.model_fields.get(name)
        kind: Any = known and Annotated[(known.annotation, *known.metadata, "as the library has it")]
        description = known.description if known else f"{name} that the answer shall have, and explain"
        fields[name] = (kind or text) | None, Field(None, description=description)
    ask = create_model(f"{task.prediction.__name__}Ask", __base__=QuestionAsk, **fields)
    ask.takes = task.takes
    return ask


def _search(limits: Limits) -> type[BaseModel]:
    """A server allows less than the library, and has lists where a command line writes them otherwise."""
    phrase = Annotated[str, StringConstraints(min_length=1, max_length=200)]
    phrases = Annotated[list[phrase], Field(max_length=limits.phrases)]
    tighter: dict[str, Any] = {
        "beam": Annotated[int, Field(ge=1, le=limits.beam)],
        "n_best": Annotated[int, Field(ge=1, le=limits.beam)],
        "min_length": Annotated[int, Field(ge=0, le=limits.tokens)],
        "max_length": Annotated[int | None, Field(ge=1, le=limits.tokens)],
        "prefix": Annotated[str, StringConstraints(max_length=1_000)],
        "must_not": phrases,
        "must_include": phrases,
    }

    def setting(name: str) -> Any:
        known = DecodeConfig.model_fields[name]
        kind = tighter.get(name) or Annotated[(known.annotation, *known.metadata, "as the library has it")]
        return kind, Field(None, description=known.description)

    settings: Any = {name: setting(name) for name in DecodeConfig.model_fields}
    return create_model("Search", __config__=STRICT, **settings)
