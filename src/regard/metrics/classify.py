"""Accuracy and macro F1 of one label per example."""

from collections.abc import Sequence


def accuracy(predicted: Sequence[str], gold: Sequence[str]) -> float:
    return sum(p == g for p, g in zip(predicted, gold, strict=True)) / len(gold)


def macro_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """The mean over labels of F1; a label that occurs in neither column does not count."""
    scores = []
    for label in sorted(set(predicted) | set(gold)):
        hits = sum(p == g == label for p, g in zip(predicted, gold, strict=True))
        scores.append(2 * hits / (predicted.count(label) + gold.count(label)))
    return sum(scores) / len(scores)
