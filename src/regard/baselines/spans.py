"""Baselines of question answering: no answer, a random span, or the span nearest to the question's words."""

import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from regard.baselines.baseline import Baseline
from regard.fields.span import first_answer
from regard.files.row import Row
from regard.metrics.rouge import WORD, words
from regard.text.unicode import outline


class NoAnswer(Baseline):
    """Answers that no context answers its question."""

    name: ClassVar[str] = "no answer"

    @classmethod
    def suits(cls, task: Any) -> bool:
        may_be_none: bool = task.answer.may_be_none
        return may_be_none

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls()

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [""] * len(examples)


class _Span(Baseline):
    """Base class: a span with the median number of words of the answers in the training data."""

    def __init__(self, n_words: int, rarity: dict[str, float]) -> None:
        self.n_words, self.rarity = n_words, rarity
        self.most_rare = max(rarity.values(), default=1.0)

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        lengths = [len(words(first_answer(row))) for row in rows if first_answer(row)] or [1]
        contexts = [{*words(text)} for text in {row.cells["context"] for row in rows}]
        counts = Counter(word for context in contexts for word in context)
        rarity = {word: float(np.log(len(contexts) / n) + 0.1) for word, n in counts.items()}
        return cls(max(1, int(np.median(lengths))), rarity)

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [self._text(one.row.cells["question"], one.row.cells["context"]) for one in examples]

    def _text(self, question: str, context: str) -> str:
        places = [match.span() for match in WORD.finditer(outline(context))]
        if not places:
            return ""
        n = min(self.n_words, len(places))
        first = self.first(words(question), [context[slice(*place)].lower() for place in places], n)
        return context[places[first][0] : places[first + n - 1][1]]

    @abstractmethod
    def first(self, question: Sequence[str], context: Sequence[str], n: int) -> int:
        """The place of the first of the n words of the answer."""


class RandomSpan(_Span):
    """A random span of the context; the same one every time."""

    name: ClassVar[str] = "random span"

    def first(self, question: Sequence[str], context: Sequence[str], n: int) -> int:
        return random.Random(" ".join([*question, *context])).randrange(len(context) - n + 1)


class NearestSpan(_Span):
    """The span that is not in the question but nearest to its words; rare words count more.

    This is the sliding window of Richardson et al. (2013), with distances: Σ rarity / (1 + distance).
    """

    name: ClassVar[str] = "nearest to the question's words"

    def first(self, question: Sequence[str], context: Sequence[str], n: int) -> int:
        starts_S = np.arange(len(context) - n + 1)
        scores_S = np.zeros(len(starts_S))
        for word in sorted({*question} & {*context}):
            places_P = np.array([place for place, other in enumerate(context) if other == word])
            before_SP, after_SP = starts_S[:, None] - places_P, places_P - (starts_S + n - 1)[:, None]
            distance_S = np.maximum(np.maximum(before_SP, after_SP), 0).min(1)
            rarity = self.rarity.get(word, self.most_rare)
            scores_S += np.where(distance_S > 0, rarity / (1 + distance_S), -rarity)
        return int(scores_S.argmax())
