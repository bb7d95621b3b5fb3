"""The protocol of a task: what a problem means. A task knows no optimiser, no schedule, no device.

Data flows one way: rows → `encode` → examples → `collate` → batches → model → `loss`, `measure`, `predict`.
The training loop, the evaluation and the explanation see only this protocol.
"""

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor, nn

from regard.baselines import Baseline
from regard.config import Config
from regard.data.cache import Arrays, Examples, Ints
from regard.data.example import Example
from regard.data.splits import Every, HoldOut
from regard.decode import in_order
from regard.errors import RecipeError
from regard.fields.axis import Axis, plural
from regard.fields.field import Field
from regard.fields.text import Text
from regard.files.documents import By
from regard.files.interactions import Grouping
from regard.files.measurements import Measured
from regard.files.read import Cells
from regard.files.row import Row, rows_of, text_of
from regard.init.columns import Table
from regard.init.match import Given, Match, Missing
from regard.metrics.metric import Metric
from regard.models.widths import Widths
from regard.tasks.prediction import Curves, Ranked
from regard.tasks.task_data import TaskData
from regard.text.tokenizer import PAD, Tokenizer

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Part:
    """One term of a loss: a sum over `count` things, so that batches of any size add up exactly."""

    sum: Tensor
    weight: float = 1.0


@dataclass(frozen=True)
class Loss:
    """Named parts; what each is divided by comes from the whole global batch (`Batch.counts`).

    `shown` holds sums that are reported but not learnt from.
    """

    parts: dict[str, Part]
    shown: dict[str, Tensor] = field(default_factory=dict)

    def objective(self, counts: dict[str, int]) -> Tensor:
        """Σ weight · sum / count. Summed over micro-batches it is the loss of the one big batch.

        A part of nothing has the sum 0, whatever it is divided by.
        """
        terms = [part.weight * part.sum / max(1, counts[name]) for name, part in self.parts.items()]
        return torch.stack(terms).sum()


class Batch(Protocol):
    """Padded tensors of some examples."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of things each part of the loss will be a sum over; known before the forward pass."""

    def to(self, device: torch.device) -> Self: ...


class Prediction(Protocol):
    """Answer of a model; `text` is what a user reads."""

    @property
    def text(self) -> str: ...

    @property
    def cut(self) -> bool:
        """True if not all of the input was read, as it was too long."""

    def ranked(self) -> list[Ranked]:
        """The answers that it chose from, the best first, each with its score; itself alone if from none."""

    def rows(self) -> list[dict[str, Any]] | None:
        """The rows of an answer that is a table by itself."""

    def drawing(self) -> Curves | None:
        """The curves of an answer that can be drawn."""

    def as_form(self, form: str, name: str, number: int) -> str:
        """The answer in one of the forms of its task; `name` is what its input is called."""

    def to_json(self) -> dict[str, Any]: ...


class Tally(Protocol):
    """Contributions of examples to the metrics, kept per example; tallies add up."""

    def __add__(self, other: Self) -> Self: ...

    def metrics(self) -> dict[str, float]: ...

    def signatures(self) -> dict[str, str]:
        """Signatures of metrics: how each was computed, where a library can say so."""

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Scores of each kind of answer, where there are kinds."""

    @property
    def has_loss(self) -> bool:
        """True if the metrics hold the loss, so that the task need not be asked for it."""


Quantity = tuple[str, str]
"""Quantity that an answer is measured by, in English and in Chinese."""


@dataclass(frozen=True)
class Axes:
    """The axes of all maps of one answer."""

    by_name: dict[str, Axis]
    left_out: str
    """The axis whose units are left out in turn, to measure what matters."""
    answer: str
    """The axis of what `replay` gives the log-probabilities of."""
    site: Callable[[str], tuple[str, str, str]]
    """An attention site → a title, and the names of the axes of its rows and columns.

    `{unit}` and `{units}` in a title stand for what the axis that is left out is made of.
    """

    row: int = 0
    """Which row of the encoder is shown, where it has several for one example."""
    quantity: Quantity | None = None
    """Quantity that changes when a unit is left out, where it is no log-probability."""

    def titled(self, site: str) -> tuple[str, Axis, Axis]:
        """The title of an attention site, and the axes of its rows and columns."""
        title, rows, columns = self.site(site)
        read = self.by_name[self.left_out].unit
        unit = "word" if read == "token" else read
        return title.format(unit=unit, units=plural(unit)), self.by_name[rows], self.by_name[columns]


class Choice(NamedTuple):
    """A member of a catalogue."""

    item: str
    title: str = ""
    category: str = ""


@dataclass(frozen=True)
class Picture:
    """A map between two axes that is no attention: what else a model can show of an answer."""

    site: str
    title: str
    weights_QK: Tensor
    """Weights from 0 to 1."""
    rows: str
    columns: str
    holds: Literal["probability", "share"] = "probability"
    """Meaning of the weights: see `AttentionMap`."""
    rated: bool = False
    """True if it claims what mattered for the answer, so that this is measured."""


MAX_BATCH_ROWS = 64
"""Inputs answered in one batch."""


Fields = Mapping[str, Cells]
"""Fields by role."""


class TaskSettings(Config):
    """The settings that the code around a task asks every task for."""

    kind: str

    if TYPE_CHECKING:  # a setting of most tasks, and what the others make of theirs

        @property
        def max_length(self) -> int:
            """The most units of an input that are read."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The columns a row must have for training."""
        raise NotImplementedError

    @property
    def inputs(self) -> tuple[str, ...]:
        """Columns that prediction needs."""
        raise NotImplementedError

    @property
    def unfitted(self) -> Fields:
        """The field of every role whose cells are not just text, as it is before anything is learnt."""
        return {}

    @property
    def asked(self) -> Mapping[str, Field]:
        """The field of every input that is asked with something else than a text."""
        return {}

    @property
    def question(self) -> Mapping[str, Field]:
        """The field that each input is asked with."""
        fields: Mapping[str, Any] = self.unfitted
        return {role: fields.get(role, Text()) for role in self.inputs}

    @property
    def document(self) -> By | None:
        """Unit that is a document of plain text, for a task that reads documents."""
        return None

    @property
    def grouping(self) -> Grouping | None:
        """Settings by which interactions become histories, for a task that reads histories."""
        return None

    @property
    def measured(self) -> Measured | None:
        """Meaning of the columns of tables whose rows are moments of series, for a task that reads such."""
        return None

    @property
    def gathered(self) -> tuple[str, str] | None:
        """The role whose equal cells make one row, and the role whose lists are then joined."""
        return None

    @property
    def hold_out(self) -> HoldOut:
        """Rule by which validation data are held out where none are given."""
        return Every()

    @property
    def pairing(self) -> dict[str, Any]:
        """Settings that decide how entities are paired, for a task that pairs them."""
        return {}

    def longest(self, model: Any) -> int:
        """Tokens that a model must have positions for, beside the end."""
        return self.max_length


class Task(Protocol):
    """A task subclasses this explicitly; what has a body here is what most tasks do alike."""

    kind: ClassVar[str]
    settings: ClassVar[type[Any]]
    models: ClassVar[tuple[str, ...]]
    """The kinds of model that can do it."""
    called: ClassVar[str]
    """Users' word for a model of this task: "a tagger"."""
    data: ClassVar[TaskData]
    """Its data: how `init` recognises them, which recipe they get first, what `check` finds in them."""
    prediction: ClassVar[type[BaseModel]]
    """The class of its answers."""
    says: ClassVar[str]
    """Description of its route of the server."""
    route: ClassVar[str] = ""
    """The last part of the route's path; the name of the task where this is empty."""
    cut: ClassVar[str] = "only the beginning was read"
    """Sentence on what became of an input that was too long."""
    searches: ClassVar[bool] = False
    """True if its answers are searched for, so that settings of the search can be asked for."""
    best: ClassVar[str] = ""
    """The setting that says how many answers an input gets; empty where an answer ranks all there are."""
    options: ClassVar[tuple[str, ...]] = ()
    """Settings of `with_settings` that stand among the inputs of a command line, as in horizon=24."""
    tabular: ClassVar[bool] = False
    """True if each answer is a table by itself, which can be drawn."""
    lists: ClassVar[bool] = False
    """True if each answer is a list, which a table has a row of for each of its items."""
    shares_length: ClassVar[bool] = False
    """True if an input and its answer have `max_length` tokens together; scored a slice at a time."""
    limit: ClassVar[str] = "max_length"
    """The setting that cuts an input that is too long."""
    forms: ClassVar[tuple[str, ...]] = ()
    """Forms that an answer can be printed in, beside its text and JSON: `as_form` of a prediction."""
    single_forms: ClassVar[tuple[str, ...]] = ()
    """Forms that hold one answer: several answers need a file each."""
    listens: ClassVar[bool] = False
    """True if it answers while a sound is still coming in (`listener`)."""
    takes: ClassVar[str] = ""
    """The input that its route takes as its field has it (`Field.request`), where that is no text."""
    request_settings: ClassVar[tuple[str, ...]] = ()
    """Settings of `with_settings` that stand beside it in a request."""
    converses: ClassVar[bool] = False
    """True if an answer goes on from its input, so that both are the input of the next question."""
    finds_entities: ClassVar[bool] = False
    """True if its answers may mark entities, which another model relates."""
    pairs_entities: ClassVar[bool] = False
    """True if its texts may be raw, where a tagger finds the entities to pair."""
    sample: ClassVar[str] = "your text"
    """An input that every model of this task can answer."""
    layout: ClassVar[type[Examples]] = Examples
    """Layout of the examples over the cached rows."""
    baselines: ClassVar[tuple[type[Baseline], ...]] = ()
    """Simple methods that a model has to beat; those that suit the fields are measured beside it."""
    draws: ClassVar[bool] = False
    """True if `draw` makes an example another one in every epoch, as augmentation does."""
    config: Any
    widths: Widths

    @classmethod
    def path(cls) -> str:
        """The path of its route."""
        return f"/v1/{cls.route or cls.kind}"

    @classmethod
    def asks(cls) -> tuple[str, ...]:
        """The names that its route is asked with: a text, or the inputs where there are several."""
        inputs: tuple[str, ...] = cls.settings().inputs
        return inputs if len(inputs) > 1 else ("text",)

    @classmethod
    def recognise(cls, table: Table, given: Given) -> Match | Missing:
        """Recognise a table that is for this task; else return a role that none of its columns has."""
        return cls.data.recognise(table, given)

    @property
    def marks_spans(self) -> bool:
        """True if the answers of this model mark entities, of a task that may find them."""
        return self.finds_entities

    @property
    def roles(self) -> tuple[str, ...]:
        """The columns a row must have for training."""
        roles: tuple[str, ...] = self.config.roles
        return roles

    @property
    def inputs(self) -> tuple[str, ...]:
        """Columns that prediction needs."""
        inputs: tuple[str, ...] = self.config.inputs
        return inputs

    @property
    @abstractmethod
    def metric(self) -> Metric:
        """The metric that decides which checkpoint is best."""

    @property
    def max_batch_rows(self) -> int:
        """The most inputs that are answered in one batch."""
        return MAX_BATCH_ROWS

    @property
    @abstractmethod
    def tokenizers(self) -> dict[str, Tokenizer]:
        """The tokenizer of every role that holds text."""

    @classmethod
    @abstractmethod
    def fit(cls, config: Any, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> Self:
        """Learn what the training data decides: vocabulary, labels."""

    @classmethod
    def rows(cls, record: Row) -> Iterator[Row]:
        """The rows that one record of a file becomes; DataError where its cells do not belong together."""
        yield record

    @property
    def question(self) -> Mapping[str, Field]:
        """The field that each input is asked with."""
        fields: Mapping[str, Field] = self.config.question
        return fields

    def probe(self) -> dict[str, Any]:
        """An input that every model of this task can answer."""
        return {
            role: field.sample if role in self.config.asked else self.sample
            for role, field in self.question.items()
        }

    def choices(self) -> Sequence[Choice]:
        """Items that an input may be made of, where there is a catalogue: the most frequent first."""
        return ()

    def asked(self, values: Iterable[Any], first: int = 1) -> list[Row]:
        """Rows of what somebody asks, counted from `first`."""
        return rows_of(values, *self.inputs, first=first, fields=self.question)

    def as_text(self, row: Row) -> str:
        """What is asked, as somebody reads it."""
        return "\n".join(text_of(row.cells[role]) for role in self.inputs)

    def with_settings(self, **changes: Any) -> Self:
        """The same task with another search (beam=5); RecipeError when it does not search."""
        raise RecipeError(f"{next(iter(changes))}: {self.called} does not search, so it has no such setting")

    def notes(self, scored: Mapping[str, Sequence[Any]]) -> list[str]:
        """Remarks on the examples to score, by split, and on what was learnt."""
        return []

    def calibrated(self, model: nn.Module, valid: Sequence[Any], device: torch.device) -> Self:
        """The task as it answers with the trained model, from what validation data say of its answers."""
        return self

    @abstractmethod
    def save(self, folder: Path) -> None: ...

    @classmethod
    @abstractmethod
    def load(cls, config: Any, folder: Path) -> Self: ...

    @abstractmethod
    def encode(self, rows: Sequence[Row]) -> list[Any]:
        """Examples of these rows, in their order."""

    def mistakes(self, tally: Any) -> list[tuple[int, str]] | None:
        """Which of the scored examples were answered wrongly, and what was right; None where an answer is
        more or less good.
        """
        return None

    def unusable(self, example: Any) -> str | None:
        """Why it cannot be trained on, as "empty" or "too long"; None where it can."""
        return None if self.is_answerable(example) else "empty"

    @abstractmethod
    def is_answerable(self, example: Any) -> bool:
        """True if there is anything to predict from."""

    @abstractmethod
    def size(self, example: Any) -> tuple[int, ...]:
        """Its length in tokens, side by side: batches are bucketed by it and bounded by rows × longest."""

    def keep(self, example: Any) -> Arrays:
        """The arrays that a cache has to keep of it."""
        arrays: Arrays = example.arrays
        return arrays

    def revive(self, row: Row, kept: Arrays) -> Any:
        """The example again, as far as training needs it; the row has no cells."""
        return Example(row, kept)

    def draw(self, example: Any, rng: np.random.Generator, others: Sequence[Any]) -> Any:
        """The example as it is in one epoch of the training, never larger than its `size`.

        `others` are all training examples as they are cached, to draw a partner from. The layout calls this
        where `draws` is true, with random numbers of (seed, epoch, example) alone: so neither the batch nor
        the process that an example is in changes what is drawn, and a resumed run draws the same again.
        """
        return example

    @abstractmethod
    def collate(self, examples: Sequence[Any]) -> Any: ...

    @abstractmethod
    def loss(self, model: nn.Module, batch: Any) -> Loss: ...

    @abstractmethod
    def measure(self, model: nn.Module, batch: Any, *, thorough: bool) -> Any:
        """Compare predictions with the truth; `thorough` searches as the recipe says, else greedily."""

    @abstractmethod
    def tally(self, examples: Sequence[Any], answers: Sequence[Any]) -> Any:
        """The tally of plain answers to these examples, whoever gave them: the model, or a baseline."""

    @abstractmethod
    def predict(self, model: nn.Module, batch: Any) -> Iterator[tuple[int, Any]]:
        """Yields (place in the batch, prediction) of each example once, as soon as it is there."""

    def samples(
        self, model: nn.Module, examples: Sequence[Any], device: torch.device
    ) -> list[dict[str, str]]:
        """Input, expected answer and answer of these validation examples, shown while a model learns."""
        answers = in_order(self.predict(model, self.collate(examples).to(device)))
        first, *_, last = self.roles
        return [
            {"input": text_of(row.cells[first]), "expected": text_of(row.cells[last]), "answer": answer.text}
            for row, answer in zip((example.row for example in examples), answers, strict=True)
        ]

    def listener(self, model: nn.Module, rate: int, device: torch.device) -> Any:
        """What hears a stream of sound of so many samples a second (tasks/listening.py)."""
        raise RecipeError(f"{self.called} answers whole inputs; only a model of transcribe hears a stream")

    def of_partials(self, partials: Iterable[Any]) -> Any:
        """The answer that the partial ones of a stream make."""
        raise RecipeError(f"{self.called} answers whole inputs; only a model of transcribe hears a stream")

    @abstractmethod
    def force(self, example: Any, prediction: Any) -> Any:
        """The batch of one that replays a finished prediction in one pass."""

    @abstractmethod
    def replay(self, model: nn.Module, batch: Any) -> Tensor:
        """Log-probabilities of what is forced: one per predicted token (or one per label)."""

    @abstractmethod
    def leave_out(self, batch: Any, axis: Axis, units: Sequence[int]) -> Any:
        """The forced batch once for each of these units of the axis, without that unit."""

    @abstractmethod
    def axes(self, example: Any, prediction: Any) -> Axes:
        """The axes of all maps of an answer."""

    def pictures(self, model: nn.Module, batch: Any) -> list[Picture]:
        """Other maps of a forced batch of one."""
        return []

    def remark(self, model: nn.Module, batch: Any, axis: Axis) -> tuple[str, str] | None:
        """A sentence on what else leaving out units of the axis changes, in English and in Chinese."""
        return None


def typed(task: type[Task], config: TaskSettings) -> str:
    """Example of how an input of a task is typed on a command line."""
    fields = config.question
    if len(fields) > 1:
        examples = {role: field.example or f'"your {role}"' for role, field in fields.items()}
        return " ".join(f"{role}={example}" for role, example in examples.items())
    ((role, field),) = fields.items()
    example = field.example or f'"{task.sample}"'
    return f"{role}={example}" if example.startswith("@") else example


def layer_of(site: str) -> int | None:
    """The layer that an attention site is in, from 1; None for a site outside of layers."""
    return next((int(part) + 1 for part in site.split(".") if part.isdigit()), None)


def unit_to_unit(answer: str) -> Callable[[str], tuple[str, str, str]]:
    """Names the sites of an encoder, and of a pooling over its states for the answer."""

    def site(name: str) -> tuple[str, str, str]:
        if name.startswith("pooling"):
            return f"pooling: {answer} → {{units}}", answer, "input"
        return f"encoder layer {layer_of(name)}: {{unit}} → {{unit}}", "input", "input"

    return site


def word_to_word(site: str) -> tuple[str, str, str]:
    """The title and axes of a site in an encoder that reads one text."""
    return f"encoder layer {layer_of(site)}: word → word", "text", "text"


def padded(sequences: Sequence[Ints]) -> Tensor:
    """One row per sequence, filled up with padding: a copy, never the mapped file itself."""
    lengths = np.array([len(sequence) for sequence in sequences])
    rows = np.full((len(sequences), lengths.max()), PAD, np.int64)
    rows[np.arange(lengths.max()) < lengths[:, None]] = np.concatenate(sequences)
    return torch.from_numpy(rows)


def without_each(tokens_1T: Tensor, places: Sequence[int]) -> Tensor:
    """A row for each of these places: the tokens without the one there."""
    length = tokens_1T.shape[1]
    left_out_B = torch.tensor(places, device=tokens_1T.device)
    keep_BT = torch.arange(length, device=tokens_1T.device) != left_out_B[:, None]
    return tokens_1T.expand(len(places), -1)[keep_BT].view(len(places), length - 1)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Dropout off and no gradients, and afterwards as it was."""
    was_training = model.training
    if was_training:  # not in vain: going through all modules takes a while for a short text
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        if was_training:
            model.train()


def each_evaluating(model: nn.Module, items: Generator[T, None, R]) -> Generator[T, None, R]:
    """Computes each item with dropout off and without gradients; between them all is as it was."""
    while True:
        with evaluating(model):
            try:
                item = next(items)
            except StopIteration as end:
                returned: R = end.value
                return returned
        yield item
