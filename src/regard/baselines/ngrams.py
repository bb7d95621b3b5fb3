"""Logistic regression on tf-idf weights of n-grams: what people try first on labelled text."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from regard.baselines.baseline import Baseline
from regard.baselines.scikit import LogisticRegression, Matrix, Ngrams, side_by_side
from regard.files.row import Row

LONGEST = 5_000
"""Characters of a text that are read."""


class NgramRegression(Baseline):
    """Of two texts the n-grams of each and those that both have; of a sentence with two marked entities those
    of the entities, of what stands between them, and of the whole.
    """

    name: ClassVar[str] = "tf-idf + logistic regression"

    def __init__(self, task: Any, rows: Sequence[Row]) -> None:
        self.fields = task.given
        columns = [[*column] for column in zip(*map(self.parts, rows), strict=True)]
        self.is_pair = len(self.fields) > 1
        self.ngrams = [Ngrams([*columns[0], *columns[1]])] * 2 if self.is_pair else [*map(Ngrams, columns)]
        labels = [task.label.parse(row.cells["label"], row.where) for row in rows]
        threshold = getattr(task.config, "threshold", 0.5)
        self.regression = LogisticRegression(self.weights(columns), labels, threshold=threshold)

    @classmethod
    def suits(cls, task: Any) -> bool:
        return all(field.reads == "tokens" for field in task.given.values())

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(task, rows)

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        columns = [[*column] for column in zip(*(self.parts(one.row) for one in examples), strict=True)]
        return self.regression.answers(self.weights(columns))

    def parts(self, row: Row) -> list[str]:
        """The texts of a row, each of which has n-grams of its own."""
        values = [field.parse(row.cells[role], row.where) for role, field in self.fields.items()]
        texts = values if isinstance(values[0], str) else around(values[0])
        return [text[:LONGEST] for text in texts]

    def weights(self, columns: Sequence[Sequence[str]]) -> Matrix:
        parts = [ngrams.weights(column) for ngrams, column in zip(self.ngrams, columns, strict=True)]
        return side_by_side([*parts, parts[0].minimum(parts[1])] if self.is_pair else parts)


def around(marked: Any) -> list[str]:
    """A sentence, its first entity, what stands between the two, its second entity; which comes first is a
    word of the sentence.
    """
    (begin, end), (other, other_end) = marked.first, marked.second
    between = marked.text[min(end, other_end) : max(begin, other)]
    order = "e1 e2" if begin <= other else "e2 e1"
    return [
        f"{order} {marked.text}",
        marked.text[begin:end],
        f"{order} {between}",
        marked.text[other:other_end],
    ]
