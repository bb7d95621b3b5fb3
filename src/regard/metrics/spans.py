"""Precision, recall and F1 of spans: one counts only if its place and its kind are right."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regard.tags import Span, spans

Sentences = Sequence[Sequence[str]]


@dataclass
class Count:
    hits: int = 0
    told: int = 0
    there: int = 0

    def add(self, found: Counter[Span], wanted: Counter[Span]) -> None:
        self.hits += (found & wanted).total()
        self.told += found.total()
        self.there += wanted.total()

    def scores(self) -> dict[str, float]:
        """Where there is nothing to find, to find nothing is right."""
        both = self.told + self.there
        return {
            "f1": 2 * self.hits / both if both else 1.0,
            "precision": self.hits / self.told if self.told else float(not self.there),
            "recall": self.hits / self.there if self.there else 1.0,
        }


def span_f1(predicted: Sentences, gold: Sentences) -> dict[str, float]:
    """Over all sentences together, as conlleval counts."""
    count = Count()
    for said, right in zip(predicted, gold, strict=True):
        count.add(Counter(spans(said)), Counter(spans(right)))
    return count.scores()


def by_kind(
    predicted: Sentences, gold: Sentences, *, marks_spans: bool = True
) -> dict[str, dict[str, float]]:
    """The same for each kind of span, with `n`, how many there are; where tags mark none, for each tag."""
    cut = spans if marks_spans else _words
    counts: dict[str, Count] = defaultdict(Count)
    for said, right in zip(predicted, gold, strict=True):
        found, wanted = Counter(cut(said)), Counter(cut(right))
        for kind in {span.kind for span in (*found, *wanted)}:
            counts[kind].add(_of(found, kind), _of(wanted, kind))
    return {kind: counts[kind].scores() | {"n": counts[kind].there} for kind in sorted(counts)}


def _words(tags: Sequence[str]) -> Iterable[Span]:
    return (Span(place, place + 1, tag) for place, tag in enumerate(tags))


def _of(found: Counter[Span], kind: str) -> Counter[Span]:
    return Counter({span: n for span, n in found.items() if span.kind == kind})
