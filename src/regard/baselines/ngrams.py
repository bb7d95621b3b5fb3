"""Logistic regression on tf-idf weights of n-grams: the usual first method for labelled text."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from regard.baselines.baseline import Baseline
from regard.baselines.scikit import LogisticRegression, Matrix, Ngrams, side_by_side
from regard.files.row import Row

LONGEST = 5_000
"""Characters of a text that are read, from its beginning."""


class NgramRegression(Baseline):
    """Logistic regression on n-grams. Two texts have their own and the common ones; a sentence with two
    marked entities has those of the entities, of the words between, and of the whole.
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
        """The texts of a row, each with n-grams of its own."""
        values = [field.parse(row.cells[role], row.where) for role, field in self.fields.items()]
        texts = values if isinstance(values[0], str) else parts_of(values[0])
        return [text[:LONGEST] for text in texts]

    def weights(self, columns: Sequence[Sequence[str]]) -> Matrix:
        parts = [ngrams.weights(column) for ngrams, column in zip(self.ngrams, columns, strict=True)]
        return side_by_side([*parts, parts[0].minimum(parts[1])] if self.is_pair else parts)


def parts_of(marked: Any) -> list[str]:
    """The sentence, its first entity, the words between, its second entity; the order of the entities is a
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
