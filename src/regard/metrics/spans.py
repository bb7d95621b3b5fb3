"""Precision, recall and F1 of spans: one counts only if its place and its kind are right."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from regard.metrics.resample import Floats, Scores
from regard.text.tags import Span, spans

Sentences = Sequence[Sequence[str]]
Count = tuple[int, int, int]
"""Spans that are right, that were told, that are there."""


def span_counts(predicted: Sentences, gold: Sentences) -> Floats:
    """Of every sentence a row: right, told, there."""
    pairs = zip(predicted, gold, strict=True)
    counts = [_count(Counter(spans(said)), Counter(spans(right))) for said, right in pairs]
    return np.array(counts, np.float64).reshape(-1, 3)


def span_scores(counts_R3: Floats) -> Scores:
    """Of sums over sentences, as conlleval has it. With nothing to find, to find nothing is right."""
    hits_R, told_R, there_R = counts_R3.T
    both_R = told_R + there_R
    return {
        "f1": np.where(both_R > 0, 2 * hits_R / np.maximum(both_R, 1), 1.0),
        "precision": np.where(told_R > 0, hits_R / np.maximum(told_R, 1), there_R == 0),
        "recall": np.where(there_R > 0, hits_R / np.maximum(there_R, 1), 1.0),
    }


def by_kind(
    predicted: Sentences, gold: Sentences, *, marks_spans: bool = True
) -> dict[str, dict[str, float]]:
    """The same for each kind of span, with `n`, how many there are; where tags mark none, for each tag."""
    cut = spans if marks_spans else _words
    counts: dict[str, Floats] = defaultdict(lambda: np.zeros((1, 3)))
    for said, right in zip(predicted, gold, strict=True):
        found, wanted = Counter(cut(said)), Counter(cut(right))
        for kind in {span.kind for span in (*found, *wanted)}:
            counts[kind] += _count(_of(found, kind), _of(wanted, kind))
    return {
        kind: {name: float(score) for name, (score,) in span_scores(counts[kind]).items()}
        | {"n": int(counts[kind][0, 2])}
        for kind in sorted(counts)
    }


def _count(found: Counter[Span], wanted: Counter[Span]) -> Count:
    return (found & wanted).total(), found.total(), wanted.total()


def _words(tags: Sequence[str]) -> Iterable[Span]:
    return (Span(place, place + 1, tag) for place, tag in enumerate(tags))


def _of(found: Counter[Span], kind: str) -> Counter[Span]:
    return Counter({span: n for span, n in found.items() if span.kind == kind})
