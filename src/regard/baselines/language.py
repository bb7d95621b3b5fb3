"""Baselines of language models: n-grams, and the frequencies of tokens."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from regard.baselines.baseline import Baseline
from regard.baselines.kneser_ney import Ints, KneserNey
from regard.files.row import Row


def tokens_of(task: Any, rows: Sequence[Row]) -> Ints:
    """All tokens of the rows, concatenated as for training."""
    tokens: Ints = np.asarray(task.layout.of(task, rows).columns["ids"].values)
    return tokens


class NgramModel(Baseline):
    """An n-gram language model over the same tokens."""

    name: ClassVar[str] = "5-grams (Kneser-Ney)"

    def __init__(self, model: KneserNey) -> None:
        self.model = model

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(KneserNey(tokens_of(task, rows), len(task.tokenizer)))

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [-float(self.model.log_probs(one.arrays["ids"]).sum()) for one in examples]


class Unigram(Baseline):
    """The commonest token for every mask, with the share of each token as its probability; the second text
    follows the first with probability ½.
    """

    name: ClassVar[str] = "commonest token"

    def __init__(self, counts_V: Ints) -> None:
        self.nats_V = -np.log((counts_V + 1) / (counts_V + 1).sum())
        self.commonest = int(counts_V.argmax())

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(np.bincount(tokens_of(task, rows), minlength=len(task.tokenizer)))

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [
            (
                float(self.nats_V[labels].sum()),
                int((labels == self.commonest).sum()),
                math.log(2) if follows >= 0 else 0.0,
                int(follows == 0),
            )
            for labels, follows in ((one.arrays["labels"], one.arrays["follows"][0]) for one in examples)
        ]
