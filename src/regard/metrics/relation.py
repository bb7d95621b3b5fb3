"""F1 of relations as SemEval-2010 task 8 scores them.

`Cause-Effect(e1,e2)` and `Cause-Effect(e2,e1)` are one relation in two directions. An answer is right only if
both are; a wrong direction is a false positive. The score is the mean F1 over relations, without the label
that says there is none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from regard.metrics.resample import Floats, Scores
from regard.metrics.spans import span_scores

_DIRECTED = re.compile(r"(.+)\((?:e1,e2|e2,e1)\)")


def relation(label: str) -> str:
    """The relation of a label, without its direction."""
    directed = _DIRECTED.fullmatch(label)
    return directed[1] if directed else label


@dataclass(frozen=True)
class RelationScores:
    """Predictions and truth by the numbers of their relations; no relation has the number after the last."""

    names: list[str]
    predicted_N: NDArray[np.int64]
    gold_N: NDArray[np.int64]
    right_N: NDArray[np.bool_]

    @classmethod
    def of(cls, predicted: Sequence[str], gold: Sequence[str], none: str) -> Self:
        names = sorted({relation(label) for label in (*predicted, *gold)} - {none})
        number = {name: n for n, name in enumerate(names)} | {none: len(names)}
        predicted_N, gold_N = (
            np.array([number[relation(label)] for label in labels]) for labels in (predicted, gold)
        )
        return cls(names, predicted_N, gold_N, np.array(predicted) == np.array(gold))

    def weighed(self, weights_RN: Floats) -> Scores:
        """Scores in percent, over relations that are predicted or gold; without any, all is right."""
        hits_RC, predicted_RC, gold_RC = np.array(list(map(self._counts, weights_RN))).transpose(1, 0, 2)
        both_RC = predicted_RC + gold_RC
        n_R = (both_RC > 0).sum(1)
        sums_R = (2 * hits_RC / np.maximum(both_RC, 1)).sum(1)
        return {
            "macro_f1": 100 * np.where(n_R > 0, sums_R / np.maximum(n_R, 1), 1.0),
            "accuracy": 100 * (weights_RN @ self.right_N) / weights_RN.sum(1),
        }

    def by_relation(self) -> dict[str, dict[str, float]]:
        """Scores of each relation in percent, and `n`, how many there are."""
        counts_3C = self._counts(np.ones(len(self.right_N)))
        scores = span_scores(counts_3C.T)
        return {
            name: {score: 100 * float(value_C[place]) for score, value_C in scores.items()}
            | {"n": int(counts_3C[2, place])}
            for place, name in enumerate(self.names)
        }

    def _counts(self, weights_N: Floats) -> Floats:
        """Counts of every relation: right, predicted, gold."""
        room = len(self.names) + 1
        hits_C = np.bincount(self.gold_N, weights_N * self.right_N, room)
        predicted_C, gold_C = (
            np.bincount(each_N, weights_N, room) for each_N in (self.predicted_N, self.gold_N)
        )
        return np.array([hits_C, predicted_C, gold_C], np.float64)[:, :-1]
