"""Accuracy and F1 of labels: one for each example, or several."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.metrics.resample import Floats, Scores

Sets = Sequence[Sequence[str]]
"""The labels of each example."""
Weigh = Callable[[Floats], Scores]
"""Scores for each row of weights, which says how often each example counts."""


def single_label(predicted: Sequence[str], gold: Sequence[str]) -> Weigh:
    """Scores in percent. macro_f1 is the mean F1 of all labels that occur in either column."""
    weigh = multi_label([(label,) for label in predicted], [(label,) for label in gold])

    def weighed(weights_RN: Floats) -> Scores:
        scores = weigh(weights_RN)
        return {name: scores[name] for name in ("accuracy", "macro_f1")}

    return weighed


def multi_label(predicted: Sets, gold: Sets) -> Weigh:
    """Scores in percent. micro_f1 counts all labels alike; accuracy is the share of wholly right ones."""
    number = {label: n for n, label in enumerate({name for names in (*predicted, *gold) for name in names})}
    both = [{*ours} & {*theirs} for ours, theirs in zip(predicted, gold, strict=True)]
    right_N = np.array(
        [{*ours} == {*theirs} for ours, theirs in zip(predicted, gold, strict=True)], np.float64
    )
    places = [_placed(sets, number) for sets in (both, predicted, gold)]

    def weighed(weights_RN: Floats) -> Scores:
        hits_RC, predicted_RC, gold_RC = (
            np.array([np.bincount(label_L, weights_N[owner_L], len(number)) for weights_N in weights_RN])
            for owner_L, label_L in places
        )
        all_RC = predicted_RC + gold_RC
        f1_RC = 2 * hits_RC / np.maximum(all_RC, 1)
        return {
            "micro_f1": 100 * 2 * hits_RC.sum(1) / np.maximum(all_RC.sum(1), 1),
            "macro_f1": 100 * f1_RC.sum(1) / np.maximum((all_RC > 0).sum(1), 1),
            "accuracy": 100 * (weights_RN @ right_N) / weights_RN.sum(1),
        }

    return weighed


def by_label(predicted: Sets, gold: Sets) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 in percent of every label, with its number in gold; the commonest first."""
    ours = Counter(label for labels in predicted for label in {*labels})
    theirs = Counter(label for labels in gold for label in {*labels})
    hits = Counter(label for mine, right in zip(predicted, gold, strict=True) for label in {*mine} & {*right})
    return {
        label: {
            "f1": 200 * hits[label] / (ours[label] + theirs[label]),
            "precision": 100 * hits[label] / max(1, ours[label]),
            "recall": 100 * hits[label] / max(1, theirs[label]),
            "n": float(theirs[label]),
        }
        for label in sorted(ours | theirs, key=lambda label: (-theirs[label], label))
    }


def _placed(
    sets: Sequence[Sequence[str] | set[str]], number: dict[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The example and the number of every label."""
    owner_L = np.repeat(np.arange(len(sets)), [len(labels) for labels in sets])
    return owner_L, np.array([number[label] for labels in sets for label in labels], np.int64)
