"""Texts without a network: the input again, its beginning, or what was written for the most similar input."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from regard.baselines.baseline import Baseline
from regard.baselines.kneser_ney import KneserNey
from regard.baselines.scikit import Matrix, Ngrams
from regard.files.row import Row, text_of
from regard.metrics.rouge import lead, words

LONGEST = 5_000
"""Characters of an input that are compared."""
TOGETHER = 256
"""Inputs that are compared at once."""


class Copy(Baseline):
    """The input as it is."""

    name: ClassVar[str] = "copy of the input"

    def __init__(self, role: str) -> None:
        self.role = role

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(task.roles[0])

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [text_of(one.row.cells[self.role]) for one in examples]


class Lead(Baseline):
    """As many words of the input's beginning as outputs have in the training data, on average."""

    name: ClassVar[str] = "beginning of the input"

    def __init__(self, role: str, n_words: int) -> None:
        self.role, self.n_words = role, n_words

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        given, wanted = task.roles
        return cls(given, round(float(np.mean([len(words(text_of(row.cells[wanted]))) for row in rows]))))

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [lead(text_of(one.row.cells[self.role]), self.n_words) for one in examples]


class Nearest(Baseline):
    """The output of the training row whose input is the most similar one (tf-idf of n-grams, cosine)."""

    name: ClassVar[str] = "nearest neighbour (tf-idf)"

    def __init__(self, task: Any, rows: Sequence[Row]) -> None:
        self.given, self.wanted = task.roles
        inputs = self.inputs(rows)
        self.ngrams = Ngrams(inputs)
        self.inputs_NV: Matrix = self.ngrams.weights(inputs)
        self.outputs = [text_of(row.cells[self.wanted]) for row in rows]

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(task, rows)

    def inputs(self, rows: Sequence[Row]) -> list[str]:
        return [text_of(row.cells[self.given])[:LONGEST] for row in rows]

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        asked_BV = self.ngrams.weights(self.inputs([one.row for one in examples]))
        found: list[str] = []
        for begin in range(0, len(examples), TOGETHER):
            similar_BN = (asked_BV[begin : begin + TOGETHER] @ self.inputs_NV.T).toarray()
            found += [self.outputs[place] for place in similar_BN.argmax(1)]
        return found


class NearestReply(Nearest):
    """A reply that was given to the most similar context; it has no probability to give to any other."""

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [(text, math.inf) for text in super().answers(examples)]


class NgramReply(Baseline):
    """How likely a reply is by the n-grams of all replies, whatever was said before; it writes nothing."""

    name: ClassVar[str] = "5-grams of replies (Kneser-Ney)"

    def __init__(self, task: Any, model: KneserNey) -> None:
        self.task, self.model = task, model

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        text = np.concatenate([one.arrays["target"] for one in task.encode(rows)])
        return cls(task, KneserNey(text, len(task.target.tokenizer)))

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [("", -float(self.model.log_probs(one.arrays["target"]).sum())) for one in examples]
