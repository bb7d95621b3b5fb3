"""Scores of labels: of one for each example, and of several, which are right together or one by one."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.metrics.resample import Floats, Scores

Sets = Sequence[Sequence[str]]
"""The labels of each example."""
Weigh = Callable[[Floats], Scores]
"""Scores for each row of weights, which says how often each example counts."""


def one_label(predicted: Sequence[str], gold: Sequence[str]) -> Weigh:
    """In percent. macro_f1 is the mean of all labels' F1; one that occurs in neither column is left out."""
    weigh = several_labels([(label,) for label in predicted], [(label,) for label in gold])

    def weighed(weights_RN: Floats) -> Scores:
        found = weigh(weights_RN)
        return {name: found[name] for name in ("accuracy", "macro_f1")}

    return weighed


def several_labels(predicted: Sets, gold: Sets) -> Weigh:
    """In percent. micro_f1 counts all labels alike; accuracy is the share of examples with exactly theirs."""
    number = {label: n for n, label in enumerate({name for names in (*predicted, *gold) for name in names})}
    both = [{*told} & {*there} for told, there in zip(predicted, gold, strict=True)]
    right_N = np.array([{*told} == {*there} for told, there in zip(predicted, gold, strict=True)], np.float64)
    hits, told, there = (_placed(sets, number) for sets in (both, predicted, gold))

    def weighed(weights_RN: Floats) -> Scores:
        hits_RC, told_RC, there_RC = (
            np.array([np.bincount(label_L, weights_N[owner_L], len(number)) for weights_N in weights_RN])
            for owner_L, label_L in (hits, told, there)
        )
        all_RC = told_RC + there_RC
        f1_RC = 2 * hits_RC / np.maximum(all_RC, 1)
        return {
            "micro_f1": 100 * 2 * hits_RC.sum(1) / np.maximum(all_RC.sum(1), 1),
            "macro_f1": 100 * f1_RC.sum(1) / np.maximum((all_RC > 0).sum(1), 1),
            "accuracy": 100 * (weights_RN @ right_N) / weights_RN.sum(1),
        }

    return weighed


def _placed(
    sets: Sequence[Sequence[str] | set[str]], number: dict[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every label of every example: whose it is, and its number."""
    owner_L = np.repeat(np.arange(len(sets)), [len(labels) for labels in sets])
    return owner_L, np.array([number[label] for labels in sets for label in labels], np.int64)
