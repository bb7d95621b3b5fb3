"""Precision, recall and F1 of spans: one counts only if its place and its kind are right."""

from collections import Counter
from collections.abc import Sequence

from regard.tags import spans


def span_f1(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> dict[str, float]:
    """Over all sentences together, as conlleval counts."""
    hits = told = there = 0
    for said, right in zip(predicted, gold, strict=True):
        found, wanted = Counter(spans(said)), Counter(spans(right))
        hits += (found & wanted).total()
        told += found.total()
        there += wanted.total()
    return {
        "f1": 2 * hits / (told + there) if told + there else 1.0,
        "precision": hits / told if told else float(there == 0),
        "recall": hits / there if there else 1.0,
    }
