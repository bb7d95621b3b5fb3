"""Baselines of generation: the input itself, its beginning, or the output of the most similar input."""

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
"""Characters of an input that are compared, from its beginning."""
TOGETHER = 256
"""Inputs compared at a time."""


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
    """The beginning of the input, with as many words as an average output of the training data."""

    name: ClassVar[str] = "beginning of the input"

    def __init__(self, role: str, n_words: int) -> None:
        self.role, self.n_words = role, n_words

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        source, target = task.roles
        return cls(source, round(float(np.mean([len(words(text_of(row.cells[target]))) for row in rows]))))

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [lead(text_of(one.row.cells[self.role]), self.n_words) for one in examples]


class Nearest(Baseline):
    """The output of the training row whose input is the most similar one (tf-idf of n-grams, cosine)."""

    name: ClassVar[str] = "nearest neighbour (tf-idf)"

    def __init__(self, task: Any, rows: Sequence[Row]) -> None:
        self.source, self.target = task.roles
        inputs = self.inputs(rows)
        self.ngrams = Ngrams(inputs)
        self.inputs_NV: Matrix = self.ngrams.weights(inputs)
        self.outputs = [text_of(row.cells[self.target]) for row in rows]

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(task, rows)

    def inputs(self, rows: Sequence[Row]) -> list[str]:
        return [text_of(row.cells[self.source])[:LONGEST] for row in rows]

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        queries_BV = self.ngrams.weights(self.inputs([one.row for one in examples]))
        outputs: list[str] = []
        for begin in range(0, len(examples), TOGETHER):
            similar_BN = (queries_BV[begin : begin + TOGETHER] @ self.inputs_NV.T).toarray()
            outputs += [self.outputs[place] for place in similar_BN.argmax(1)]
        return outputs


class NearestReply(Nearest):
    """The reply to the most similar context; it gives other replies no probability."""

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [(text, math.inf) for text in super().answers(examples)]


class NgramReply(Baseline):
    """The probability of a reply by the n-grams of all replies, without its context; it writes nothing."""

    name: ClassVar[str] = "5-grams of replies (Kneser-Ney)"

    def __init__(self, task: Any, model: KneserNey) -> None:
        self.task, self.model = task, model

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        text = np.concatenate([one.arrays["target"] for one in task.encode(rows)])
        return cls(task, KneserNey(text, len(task.target.tokenizer)))

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [("", -float(self.model.log_probs(one.arrays["target"]).sum())) for one in examples]
