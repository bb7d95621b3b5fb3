"""Texts with any number of labels in batches, what a model gives them, and how that is scored."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch import Tensor

from regard.data.cache import Ints
from regard.files.row import Row
from regard.metrics.classify import Weigh, several_labels
from regard.metrics.resample import plainly
from regard.tasks.shared import Columns, Padded


@dataclass(frozen=True, slots=True)
class Multilabelled:
    """`tokens` are framed by the tokeniser's marks; `labels` are numbers, none when unknown."""

    row: Row
    tokens: Ints
    labels: Ints
    cut: bool = False


@dataclass(frozen=True)
class Multilabelleds(Padded):
    tokens_BT: Tensor
    lengths_B: Tensor
    labels_BC: Tensor
    """1 where a text has a label, else 0."""
    examples: tuple[Multilabelled, ...]

    @property
    def counts(self) -> dict[str, int]:
        return {"texts": len(self.examples)}


@dataclass(frozen=True)
class Labels:
    text: str
    """As in the data: the labels, with what separates them."""
    labels: tuple[str, ...]
    probability: float
    """That exactly these are right."""
    probabilities: dict[str, float]
    cut: bool = False
    """The text was longer than max_length; only its beginning was read."""

    def to_json(self) -> dict[str, Any]:
        shown = {label: round(p, 4) for label, p in self.probabilities.items()}
        answer: dict[str, Any] = {"text": self.text, "labels": list(self.labels)}
        answer |= {"probability": round(self.probability, 4), "probabilities": shown}
        return answer | ({"input_cut": True} if self.cut else {})


@dataclass(frozen=True)
class LabelsTally(Columns):
    predicted: list[tuple[str, ...]] = field(default_factory=list)
    gold: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def truth(self) -> list[tuple[str, ...]]:
        return self.gold

    @cached_property
    def weighed(self) -> Weigh:
        return several_labels(self.predicted, self.gold)

    def metrics(self) -> dict[str, float]:
        return plainly(self)

    def signatures(self) -> dict[str, str]:
        return {"accuracy": "texts with exactly their labels"}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}
