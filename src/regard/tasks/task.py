"""What a problem means. A task knows no optimiser, no schedule, no device.

Data flows one way: rows → `encode` → examples → `collate` → batches → model → `loss`, `measure`, `predict`.
The training loop, the evaluation and the explanation see only this protocol.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.examples import Ints, Kept
from regard.decode import untold
from regard.files.source import Row
from regard.models.dims import Dims
from regard.text.tokenizer import PAD, Tokenizer


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
        """How many things each part of the loss will be a sum over; known before the forward pass."""

    def to(self, device: torch.device) -> Self: ...


class Prediction(Protocol):
    """What a model answers; `text` is what a user reads."""

    @property
    def text(self) -> str: ...

    @property
    def cut(self) -> bool:
        """Whether not all of the input was read, as it was too long."""

    def to_json(self) -> dict[str, Any]: ...


class Tally(Protocol):
    """What examples contributed to the metrics, kept per example; tallies add up."""

    def __add__(self, other: Self) -> Self: ...

    def metrics(self) -> dict[str, float]: ...

    def signatures(self) -> dict[str, str]:
        """How each metric was computed, where a library can say so."""

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Scores of each kind of answer, where there are kinds."""


@runtime_checkable
class Priced(Protocol):
    """A tally whose metrics hold the loss: the task need not be asked for it beside them."""

    @property
    def n_tokens(self) -> int:
        """What the loss is a mean over."""


@dataclass(frozen=True)
class Ground:
    """What the rows or the columns of an attention map are: a name, and a label for each."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A map that is no attention, between two grounds: what else a model can show of an answer."""

    site: str
    title: str
    weights_QK: Tensor
    """From 0 to 1."""
    rows: str
    columns: str


Ex = TypeVar("Ex")
Ba = TypeVar("Ba", bound=Batch)
Pr = TypeVar("Pr", bound=Prediction)
Ta = TypeVar("Ta", bound=Tally, covariant=True)

Tell = Callable[[int, Pr], None]
"""(place in the batch, prediction): hears of each once, in any order."""


ROWS_TOGETHER = 64
"""Inputs answered in one batch."""


class Task(Protocol[Ex, Ba, Pr, Ta]):
    kind: ClassVar[str]
    roles: ClassVar[tuple[str, ...]]
    """The columns a row must have for training."""
    inputs: ClassVar[tuple[str, ...]]
    """Those of them that prediction needs."""
    models: ClassVar[tuple[str, ...]]
    """The kinds of model that can do it."""
    unusable: ClassVar[str]
    """What rows are that cannot be trained on."""
    input_ground: ClassVar[str]
    """The ground whose pieces `leave_out` leaves out."""
    answer_ground: ClassVar[str]
    """The ground of what `replay` tells the log-probabilities of."""
    dims: Dims

    @property
    def metric(self) -> str:
        """The metric that decides which checkpoint is best; higher is better."""

    @property
    def rows_together(self) -> int:
        """How many inputs are answered in one batch at most."""

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """The tokeniser of every role that holds text."""

    @classmethod
    def fit(cls, config: Any, rows: Iterable[Row]) -> Self:
        """Learn what the training data decides: vocabulary, labels."""

    def searching(self, **changes: Any) -> Self:
        """The same task with another search (beam=5); RecipeError when it does not search."""

    def save(self, folder: Path) -> None: ...

    @classmethod
    def load(cls, config: Any, folder: Path) -> Self: ...

    def encode(self, rows: Sequence[Row]) -> list[Ex]:
        """Examples of these rows, in their order."""

    def usable(self, example: Ex) -> bool:
        """Whether it can be trained on: it says something and was not cut."""

    def usable_input(self, example: Ex) -> bool:
        """Whether there is anything to predict from."""

    def size(self, example: Ex) -> tuple[int, ...]:
        """Its length in tokens, side by side: batches are bucketed by it and bounded by rows × longest."""

    def keep(self, example: Ex) -> Kept:
        """What a cache has to keep of it, as sequences of integers from 0 on."""

    def revive(self, row: Row, kept: Kept) -> Ex:
        """The example again, as far as training needs it; the row has no text."""

    def collate(self, examples: Sequence[Ex]) -> Ba: ...

    def loss(self, model: nn.Module, batch: Ba) -> Loss: ...

    def measure(self, model: nn.Module, batch: Ba, *, thorough: bool) -> Ta:
        """Compare predictions with the truth; `thorough` searches as the recipe says, else greedily."""

    def predict(self, model: nn.Module, batch: Ba, tell: Tell[Pr] = untold) -> list[Pr]:
        """Of every example, in their order; `tell` hears each as soon as it is there."""

    def force(self, example: Ex, prediction: Pr) -> Ba:
        """The batch of one that replays a finished prediction in one pass."""

    def replay(self, model: nn.Module, batch: Ba) -> Tensor:
        """Log-probabilities of what is forced: one per predicted token (or one per label)."""

    def leave_out(self, batch: Ba, pieces: range) -> Ba:
        """The forced batch once per input piece of these, without that piece."""

    def grounds(self, example: Ex, prediction: Pr) -> dict[str, Ground]:
        """What attention maps are between: "source", "target", "summary" …"""

    def site_grounds(self, site: str) -> tuple[str, str, str]:
        """For an attention site: a title, and the names of the grounds of its rows and columns."""

    def pictures(self, model: nn.Module, batch: Ba) -> list[Picture]:
        """What else can be shown of a forced batch of one."""


@runtime_checkable
class Sampling(Protocol):
    """A task that says itself what of its answers is worth showing while a model learns."""

    def samples(
        self, model: nn.Module, examples: Sequence[Any], device: torch.device
    ) -> list[dict[str, str]]:
        """Input, expected answer and answer of these validation examples."""


def typed(inputs: Sequence[str], text: str = "your text") -> str:
    """How what a task is asked stands on a command line; `text` is what it is asked alone."""
    first, *others = inputs
    if not others:
        return f'"{text}"'
    return " ".join([f'"your {first}"', *(f'--{role} "your {role}"' for role in others)])


def layer_of(site: str) -> int | None:
    """The layer that an attention site is in, from 1; None for a site outside of layers."""
    return next((int(part) + 1 for part in site.split(".") if part.isdigit()), None)


def word_to_word(site: str) -> tuple[str, str, str]:
    """`site_grounds` of an encoder that reads words."""
    return f"encoder layer {layer_of(site)}: word → word", "text", "text"


def padded(sequences: Sequence[Ints]) -> Tensor:
    """One row per sequence, filled up with padding: a copy, never the mapped file itself."""
    lengths = np.array([len(sequence) for sequence in sequences])
    rows = np.full((len(sequences), lengths.max()), PAD, np.int64)
    rows[np.arange(lengths.max()) < lengths[:, None]] = np.concatenate(sequences)
    return torch.from_numpy(rows)


def without_each(tokens_1T: Tensor, pieces: range) -> Tensor:
    """A row for each of these pieces: the tokens without it."""
    length = tokens_1T.shape[1]
    left_out_B = torch.tensor(pieces, device=tokens_1T.device)
    keep_BT = torch.arange(length, device=tokens_1T.device) != left_out_B[:, None]
    return tokens_1T.expand(len(pieces), -1)[keep_BT].view(len(pieces), length - 1)


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
