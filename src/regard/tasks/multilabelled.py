"""Texts with any number of labels in batches, what a model gives them, and how that is scored."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from regard.data.examples import Ints
from regard.data.source import Row
from regard.metrics.classify import Weigh, several_labels
from regard.metrics.resample import plainly


@dataclass(frozen=True, slots=True)
class Multilabelled:
    """`tokens` are framed by the tokeniser's marks; `labels` are numbers, none when unknown."""

    row: Row
    tokens: Ints
    labels: Ints
    cut: bool = False


@dataclass(frozen=True)
class Multilabelleds:
    tokens_BT: Tensor
    lengths_B: Tensor
    labels_BC: Tensor
    """1 where a text has a label, else 0."""
    examples: tuple[Multilabelled, ...]

    @property
    def counts(self) -> dict[str, int]:
        return {"texts": len(self.examples)}

    def to(self, device: torch.device) -> Self:
        return replace(
            self,
            tokens_BT=self.tokens_BT.to(device),
            lengths_B=self.lengths_B.to(device),
            labels_BC=self.labels_BC.to(device),
        )


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
class LabelsTally:
    predicted: list[tuple[str, ...]] = field(default_factory=list)
    gold: list[tuple[str, ...]] = field(default_factory=list)

    def __add__(self, other: "LabelsTally") -> "LabelsTally":
        return LabelsTally(self.predicted + other.predicted, self.gold + other.gold)

    @property
    def truth(self) -> list[tuple[str, ...]]:
        return self.gold

    def taken(self, places: Sequence[int]) -> "LabelsTally":
        predicted, gold = ([part[place] for place in places] for part in (self.predicted, self.gold))
        return LabelsTally(predicted, gold)

    @cached_property
    def weighed(self) -> Weigh:
        return several_labels(self.predicted, self.gold)

    def metrics(self) -> dict[str, float]:
        return plainly(self)

    def signatures(self) -> dict[str, str]:
        return {"accuracy": "texts with exactly their labels"}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}
