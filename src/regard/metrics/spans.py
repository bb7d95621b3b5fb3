"""Precision, recall and F1 of spans: a span is right if its place and its kind are."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from regard.metrics.resample import Floats, Scores
from regard.text.tags import Span, spans

TagSequences = Sequence[Sequence[str]]
Count = tuple[int, int, int]
"""Spans that are right, predicted, gold."""


def span_counts(predicted: TagSequences, gold: TagSequences) -> Floats:
    """A row for every sentence: right, predicted, gold."""
    pairs = zip(predicted, gold, strict=True)
    counts = [_count(Counter(spans(ours)), Counter(spans(theirs))) for ours, theirs in pairs]
    return np.array(counts, np.float64).reshape(-1, 3)


def span_scores(counts_R3: Floats) -> Scores:
    """Scores of sums over sentences, as in conlleval. Where there are no spans, to predict none is right."""
    hits_R, predicted_R, gold_R = counts_R3.T
    both_R = predicted_R + gold_R
    return {
        "f1": np.where(both_R > 0, 2 * hits_R / np.maximum(both_R, 1), 1.0),
        "precision": np.where(predicted_R > 0, hits_R / np.maximum(predicted_R, 1), gold_R == 0),
        "recall": np.where(gold_R > 0, hits_R / np.maximum(gold_R, 1), 1.0),
    }


def by_kind(
    predicted: TagSequences, gold: TagSequences, *, marks_spans: bool = True
) -> dict[str, dict[str, float]]:
    """The scores of each kind of span, with its number `n`; where tags mark no spans, of each tag."""
    cut = spans if marks_spans else _words
    counts: dict[str, Floats] = defaultdict(lambda: np.zeros((1, 3)))
    for our_tags, their_tags in zip(predicted, gold, strict=True):
        ours, theirs = Counter(cut(our_tags)), Counter(cut(their_tags))
        for kind in {span.kind for span in (*ours, *theirs)}:
            counts[kind] += _count(_of(ours, kind), _of(theirs, kind))
    return {
        kind: {name: float(score) for name, (score,) in span_scores(counts[kind]).items()}
        | {"n": int(counts[kind][0, 2])}
        for kind in sorted(counts)
    }


def _count(predicted: Counter[Span], gold: Counter[Span]) -> Count:
    return (predicted & gold).total(), predicted.total(), gold.total()


def _words(tags: Sequence[str]) -> Iterable[Span]:
    return (Span(place, place + 1, tag) for place, tag in enumerate(tags))


def _of(counts: Counter[Span], kind: str) -> Counter[Span]:
    return Counter({span: n for span, n in counts.items() if span.kind == kind})
