"""What an answerer answers, and how its answers are scored."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from regard.metrics.answers import scores
from regard.metrics.resample import Floats, Scores, unweighted
from regard.tasks.shared import Columns


@dataclass(frozen=True)
class Answered:
    """A part of the context; an empty text says that the context does not answer the question."""

    text: str
    start: int | None
    """The character of the context it begins with,"""
    end: int | None
    """and the one before which it ends."""
    probability: float
    """Of its beginning times that of its end, in the window where it stands."""
    windows: int
    """In which the context was read."""
    window: int
    """The one in which the answer was found,"""
    ends: tuple[int, int]
    """and its first and last place there."""
    cut: bool = False
    """The question was too long; only its beginning was read."""

    def to_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "probability": round(self.probability, 4),
            "windows": self.windows,
        }
        return answer | ({"input_cut": True} if self.cut else {})


@dataclass(frozen=True)
class AnswerTally(Columns):
    answers: list[str] = field(default_factory=list)
    right: list[tuple[str, ...]] = field(default_factory=list)
    """All that would be right; none where there is no answer."""

    @property
    def truth(self) -> list[tuple[str, ...]]:
        return self.right

    @cached_property
    def _scores(self) -> dict[str, list[float]]:
        """By metric, of each question."""
        found = [scores(answer, right) for answer, right in zip(self.answers, self.right, strict=True)]
        return {name: [one[name] for one in found] for name in found[0]}

    def weighed(self, weights_RN: Floats) -> Scores:
        sums_R = weights_RN.sum(1)
        return {name: 100 * (weights_RN @ np.array(own)) / sums_R for name, own in self._scores.items()}

    def metrics(self) -> dict[str, float]:
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        said = "as SQuAD's script: without case, punctuation, articles; the best over all right answers"
        return {"f1": said}

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Of questions with and without an answer, where there are both."""
        answered = [place for place, right in enumerate(self.right) if right]
        others = [place for place, right in enumerate(self.right) if not right]
        if not answered or not others:
            return {}
        kinds = {"has an answer": answered, "has none": others}
        return {kind: unweighted(self.taken(own)) | {"n": len(own)} for kind, own in kinds.items()}
