"""What requests and answers look like: the one description that is checked, and published as OpenAPI.

Requests are strict: a number in quotes is not a number. A search has the names and bounds of `DecodeConfig`,
all of them optional, since what is left out is as the model's recipe says.
"""

from functools import reduce
from operator import or_
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model, model_validator

from regard.decode import DecodeConfig
from regard.kinds import KINDS, Kind
from regard.serve.asked import Given
from regard.serve.limits import LIMITS

Text = Annotated[str, StringConstraints(min_length=1, max_length=LIMITS.characters)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=LIMITS.texts)]
Phrases = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=200)]], Field(max_length=LIMITS.phrases)
]
TIGHTER: dict[str, Any] = {
    "beam": Annotated[int, Field(ge=1, le=LIMITS.beam)],
    "n_best": Annotated[int, Field(ge=1, le=LIMITS.beam)],
    "min_length": Annotated[int, Field(ge=0, le=LIMITS.pieces)],
    "max_length": Annotated[int | None, Field(ge=1, le=LIMITS.pieces)],
    "prefix": Annotated[str, StringConstraints(max_length=1_000)],
    "must_not": Phrases,
    "must_include": Phrases,
}
"""Where a server allows less than the library, or lists stand for what a command line writes otherwise."""


class Ask(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="name of the model; not needed when only one can be meant"
    )

    def given(self) -> dict[str, Given]:
        """Every field that holds what is asked."""
        return {name: getattr(self, name) for name in NAMES if name in type(self).model_fields}


def _setting(name: str) -> Any:
    known = DecodeConfig.model_fields[name]
    kind = TIGHTER.get(name) or Annotated[(known.annotation, *known.metadata, "as the library has it")]
    return kind, Field(None, description=known.description)


Search = create_model(
    "Search",
    __config__=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False),
    **{name: _setting(name) for name in DecodeConfig.model_fields},
)


class Decoding(Ask):
    decode: Search = Field(default_factory=Search, description="how to search")

    @property
    def settings(self) -> dict[str, Any]:
        given: dict[str, Any] = self.decode.model_dump(exclude_unset=True)
        return given


class PlainAsk(Ask):
    """What is asked comes in fields of their own, named by the kind."""

    attention: bool = Field(False, description="answer with what was attended to, as /v1/explain does")

    @property
    def settings(self) -> dict[str, Any]:
        return {}


class PairingAsk(PlainAsk):
    entities: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="of raw texts: name of the tagger that finds their entities, served beside it"
    )


class SearchAsk(Decoding, PlainAsk):
    stream: bool = Field(False, description="send the answer as server-sent events while it is written")


class ReplyAsk(SearchAsk):
    text: Text | Texts | None = Field(None, description="a conversation, a turn a line; or a list of such")
    turns: Texts | None = Field(None, description="instead of it: the turns of a conversation")

    @model_validator(mode="after")
    def _is_one_conversation(self) -> Self:
        if (self.text is None) == (self.turns is None):
            raise ValueError("give either text or turns")
        if sum(map(len, self.turns or ())) > LIMITS.characters:
            raise ValueError(f"turns may have {LIMITS.characters} characters together; leave out the oldest")
        return self

    def given(self) -> dict[str, Given]:
        return super().given() | ({} if self.turns is None else {"text": as_lines(self.turns)})


def as_lines(turns: list[str]) -> str:
    """A conversation as one text: a turn a line."""
    return "\n".join(" ".join(turn.split()) for turn in turns)


class ExplainedAsk(Decoding):
    packed: bool = Field(
        False,
        description="weights in base64: zlib, all low bytes before all high bytes, of weight × fullScale",
    )


NAMES = tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.asks))
"""Of all fields that can hold what is asked."""


def _ask(kind: Kind) -> type[PlainAsk]:
    if kind.turns is not None:
        return ReplyAsk
    base = SearchAsk if kind.searches else PairingAsk if kind.pairs else PlainAsk
    fields: Any = {name: (Text | Texts, Field(description=f"a {name}, or a list")) for name in kind.asks}
    return create_model(f"{kind.answer.__name__}Ask", __base__=base, **fields)


def _explained_ask() -> type[ExplainedAsk]:
    fields: Any = {name: (Text | None, Field(None, description="if the model needs it")) for name in NAMES}
    return create_model("ExplainAsk", __base__=ExplainedAsk, **fields)


ASKS = {name: _ask(kind) for name, kind in KINDS.items()}
"""What is sent to the route of each kind."""
EXPLAIN_ASK = _explained_ask()


class Axis(BaseModel):
    name: str
    labels: list[str]


class AttentionMap(BaseModel):
    site: str
    title: str
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


def _answer(kind: Kind) -> Any:
    """Its answer, which may come with what was attended to."""
    return create_model(kind.answer.__name__, __base__=kind.answer, attention=(Attention | None, None))


def _answers(answer: Any) -> type[BaseModel]:
    return create_model(f"{answer.__name__}s", model=(str, ...), answers=(list[answer], ...))


ANSWER = {name: _answer(kind) for name, kind in KINDS.items()}
ANSWERS = {name: _answers(answer) for name, answer in ANSWER.items()}
"""What is sent for the texts of a request, by kind of task."""
_ANY: Any = reduce(or_, ANSWER.values())
Explained = create_model("Explained", model=(str, ...), answer=(_ANY, ...))


class Model(BaseModel):
    name: str
    task: str
    description: str
    ready: bool
    max_length: int = Field(description="pieces of a text that are read")
    heads: int = Field(description="attention heads that can be looked at")
    decode: dict[str, Any] | None = Field(description="how it searches unless told")


class Models(BaseModel):
    models: list[Model]


class State(BaseModel):
    status: str


class Fault(BaseModel):
    code: str
    message: str
    limit: float | None = None


class Failure(BaseModel):
    error: Fault
