"""Texts with a label in batches, the label that a model gives, how it is scored, texts cut short."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.cache import Ints
from regard.files.row import Row
from regard.metrics.classify import Weigh, one_label
from regard.metrics.resample import plainly
from regard.tasks.shared import Columns, Padded
from regard.tasks.task import padded, without_each
from regard.text.tokenizer import PAD, Tokenizer


@dataclass(frozen=True, slots=True)
class Text:
    """`tokens` are framed by the tokeniser's marks, so no text is empty; `label` is −1 when unknown."""

    row: Row
    tokens: Ints
    label: int
    cut: bool = False
    second: int | None = None
    """Where the second text begins, if there is one."""


@dataclass(frozen=True)
class Texts(Padded):
    tokens_BT: Tensor
    lengths_B: Tensor
    labels_B: Tensor
    examples: tuple[Text, ...]
    segments_BT: Tensor | None = None
    """Which of the two texts a token belongs to, where there are two."""

    @property
    def counts(self) -> dict[str, int]:
        return {"texts": len(self.examples)}


@dataclass(frozen=True)
class Label:
    text: str
    probability: float
    probabilities: dict[str, float]
    index: int
    cut: bool = False
    """The text was longer than max_length; not all of it was read."""

    def to_json(self) -> dict[str, Any]:
        shown = {label: round(p, 4) for label, p in self.probabilities.items()}
        answer = {"text": self.text, "probability": round(self.probability, 4), "probabilities": shown}
        return answer | ({"input_cut": True} if self.cut else {})


@dataclass(frozen=True)
class LabelTally(Columns):
    predicted: list[str] = field(default_factory=list)
    gold: list[str] = field(default_factory=list)

    @property
    def truth(self) -> list[str]:
        return self.gold

    @cached_property
    def weighed(self) -> Weigh:
        return one_label(self.predicted, self.gold)

    def metrics(self) -> dict[str, float]:
        return plainly(self)

    def signatures(self) -> dict[str, str]:
        return {}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}


def shortened(texts: Sequence[list[int]], limit: int) -> list[list[int]]:
    """As much of one text, or of two with a mark between them, as fits: of two the longer loses first.

    Where both lose, the one that was longer keeps the odd piece, as in `tokenizers`.
    """
    if len(texts) == 1:
        return [texts[0][:limit]]
    first, second = texts
    room = limit - 1
    half = (room + (len(first) > len(second))) // 2
    kept = first[: max(room - len(second), half)]
    return [kept, second[: room - len(kept)]]


def segments(examples: Sequence[Text]) -> Tensor | None:
    """Which of two texts each token belongs to: segments_BT; None where there is only one."""
    sizes = [(one.second, len(one.tokens) - one.second) for one in examples if one.second is not None]
    return padded([np.repeat([0, 1], both) for both in sizes]) if sizes else None


def marks_among(tokenizer: Tokenizer, tokens_1T: Tensor, pieces: Sequence[int]) -> Tensor:
    """Which of the pieces are marks, not words: stays_B."""
    marks = torch.tensor([*tokenizer.marks.begin, tokenizer.marks.end], device=tokens_1T.device)
    return torch.isin(tokens_1T[0, list(pieces)], marks)


def without_words(row_1T: Tensor, pieces: Sequence[int], stays_B: Tensor) -> Tensor:
    """A row for each of these pieces, without it unless it stays."""
    shorter_BT = F.pad(without_each(row_1T, pieces), (0, 1), value=PAD)
    return torch.where(stays_B[:, None], row_1T, shorter_BT)
