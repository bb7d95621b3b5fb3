"""Pairs of texts in batches, and what is written for the first of them: the values of seq2seq."""

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from regard.data.cache import Ints
from regard.files.row import Row
from regard.tasks.prediction import Ranked
from regard.tasks.shared import Padded
from regard.text.tokenizer import PAD


@dataclass(frozen=True, slots=True)
class Pair:
    """`source` ends with EOS; `target` begins with BOS and ends with EOS, or is BOS alone when unknown."""

    row: Row
    source: Ints
    target: Ints
    cut: bool = False
    """Whether the source was longer than what is read."""
    target_cut: bool = False


@dataclass(frozen=True)
class Pairs(Padded):
    source_BK: Tensor
    source_lengths_B: Tensor
    target_BT: Tensor
    """BOS and the target's pieces: what the decoder reads. What it shall say is one place further."""
    labels_BT: Tensor
    examples: tuple[Pair, ...]

    @property
    def keep_BT(self) -> Tensor:
        return self.labels_BT != PAD

    @property
    def counts(self) -> dict[str, int]:
        return {"tokens": int(self.keep_BT.sum())}


@dataclass(frozen=True)
class Written:
    """A translation, a summary, a reply."""

    text: str
    ids: tuple[int, ...]
    score: float
    """Not a number where none was asked for."""
    others: tuple["Written", ...] = ()
    """The rest of the n best."""
    cut: bool = False
    """The input was longer than max_length; this answers a part of it."""
    steps: tuple[float, ...] = ()
    """The log-probability of each piece, and of the end."""

    def ranked(self) -> list[Ranked]:
        return [
            (one.text, None if math.isnan(one.score) else round(one.score, 4)) for one in (self, *self.others)
        ]

    def to_json(self) -> dict[str, Any]:
        scored = {} if math.isnan(self.score) else {"score": round(self.score, 4)}
        answer: dict[str, Any] = {"text": self.text, **scored}
        if self.cut:
            answer["input_cut"] = True
        if self.others:
            answer["others"] = [other.to_json() for other in self.others]
        return answer


NOTHING = Written("", (), 0.0)
"""What is written for an empty text."""
