"""Transcripts by those who do not listen: the commonest one, and none."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from regard.baselines.baseline import Baseline
from regard.files.row import Row


class CommonestTranscript(Baseline):
    """The commonest transcript of the training data, whatever is heard."""

    name: ClassVar[str] = "commonest transcript"

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(Counter(row.cells["text"] for row in rows).most_common(1)[0][0])

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [self.text] * len(examples)


class Silence(Baseline):
    """Nothing: every word is missing, and none is wrong."""

    name: ClassVar[str] = "nothing"

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls()

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [""] * len(examples)
