"""What a tagger answers, and how its answers are scored."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from regard.metrics.resample import Floats, Scores, plainly
from regard.metrics.spans import by_kind, span_counts, span_scores
from regard.tasks.shared import Columns
from regard.text import tags


@dataclass(frozen=True)
class Tagged:
    """Words in their order, with their tags."""

    input: str
    places: tuple[tuple[int, int], ...]
    """Of each word in the input."""
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    """Of each word's tag, whatever the others are."""
    marks_spans: bool
    cut: bool = False
    """A word had so many pieces that only its beginning was read."""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.input[start:end] for start, end in self.places)

    @property
    def text(self) -> str:
        return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Places are those of characters in the input."""
        return list(self._spans()) if self.marks_spans else []

    def _spans(self) -> Iterator[dict[str, Any]]:
        for first, end, kind in tags.spans(self.tags):
            start, stop = self.places[first][0], self.places[end - 1][1]
            yield {"text": self.input[start:stop], "kind": kind, "start": start, "end": stop}

    def to_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "text": self.text,
            "words": list(self.words),
            "tags": list(self.tags),
            "probabilities": [round(p, 4) for p in self.probabilities],
        }
        if self.marks_spans:
            answer["spans"] = self.spans
        return answer | ({"input_cut": True} if self.cut else {})


@dataclass(frozen=True)
class TagTally(Columns):
    marks_spans: bool
    predicted: list[tuple[str, ...]] = field(default_factory=list)
    gold: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def truth(self) -> list[tuple[str, ...]]:
        return self.gold

    @cached_property
    def _words_N2(self) -> Floats:
        """Of every sentence: words with the right tag, and words."""
        pairs = zip(self.predicted, self.gold, strict=True)
        right = [sum(map(str.__eq__, said, wanted)) for said, wanted in pairs]
        return np.array([right, list(map(len, self.gold))], np.float64).T

    @cached_property
    def _spans_N3(self) -> Floats:
        return span_counts(self.predicted, self.gold)

    def weighed(self, weights_RN: Floats) -> Scores:
        right_R, words_R = (weights_RN @ self._words_N2).T
        found = span_scores(weights_RN @ self._spans_N3) if self.marks_spans else {}
        return {
            name: 100 * value
            for name, value in (found | {"accuracy": right_R / np.maximum(words_R, 1)}).items()
        }

    def metrics(self) -> dict[str, float]:
        return plainly(self)

    def signatures(self) -> dict[str, str]:
        return {"f1": "spans right in place and kind, over all sentences"} if self.marks_spans else {}

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Precision, recall and F1 of every kind of span, or of every tag where tags mark none."""
        found = by_kind(self.predicted, self.gold, marks_spans=self.marks_spans)
        return {
            kind: {name: value if name == "n" else 100 * value for name, value in scores.items()}
            for kind, scores in found.items()
        }
