"""The commonest answer, for every input."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from regard.baselines.baseline import Baseline
from regard.files.row import Row


class Majority(Baseline):
    """The commonest label of the training data, or the commonest set of labels."""

    name: ClassVar[str] = "majority"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        counts = Counter(task.label.parse(row.cells["label"], row.where) for row in rows)
        return cls(counts.most_common(1)[0][0])

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [self.answer] * len(examples)
