"""The protocol of a baseline: it learns from rows in seconds and answers as a model does."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self

from regard.files.row import Row


class Baseline(Protocol):
    """A simple method whose answers are scored by the task's own tally.

    A task lists its baselines; those that suit its fields are measured beside a model. They see a task only
    through its fields and vocabulary, and need no torch.
    """

    name: ClassVar[str]

    @classmethod
    def suits(cls, task: Any) -> bool:
        """True if the baseline can read the task's kinds of data."""
        return True

    @classmethod
    @abstractmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        """Learn from training rows, a fair sample if there are very many; RegardError if it cannot."""

    @abstractmethod
    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        """Answers in the form that `Task.tally` takes, one for each example."""
