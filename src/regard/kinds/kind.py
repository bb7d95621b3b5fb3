"""What a kind of task brings to `init`, `check` and the server; training knows nothing of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from regard.files.row import Row, text_of
from regard.kinds.columns import Columns, Picked
from regard.kinds.finding import Finding, Severity
from regard.kinds.guess import Guess
from regard.kinds.plan import Plan, Script
from regard.kinds.rows import Splits
from regard.kinds.settings import Pace, Setting
from regard.tasks import TASKS, AnyTask, TaskConfig
from regard.tasks.task import typed

Lengths = NDArray[np.int64]


class Answer(BaseModel):
    """What a server sends for a text: what every kind's answer has."""

    text: str


def _nothing_counted(rows: Sequence[Row]) -> dict[str, int]:
    return {}


def _nothing_more(task: AnyTask, split: str, rows: Sequence[Row]) -> list[Finding]:
    return []


def _any_row(row: Row) -> bool:
    return True


def _by_pieces(guess: Guess, scripts: Mapping[str, Script]) -> bool:
    return False


def _all_of_it(role: str, text: str) -> str:
    return text


def _longest_side(lengths: Sequence[Lengths]) -> Lengths:
    longest: Lengths = np.max(lengths, axis=0)
    return longest


def whole_texts(task: AnyTask, role: str, rows: Sequence[Row]) -> list[list[int]]:
    return task.tokenizers[role].ids([text_of(row.cells[role]) for row in rows])


@dataclass(frozen=True)
class Kind:
    name: str
    roles: tuple[str, ...]
    texts: tuple[str, ...]
    """Those that hold text."""

    # init
    looks_like: Callable[[Columns], bool]
    """Whether a table could be for this, by its values alone."""
    pick: Callable[[str, Columns], Picked]
    """The column of a role, of those that no other role has."""
    example: str
    """How to say it on the command line."""
    sections: Callable[[Plan], Mapping[str, Sequence[Setting]]]
    """Of a first recipe: the task and the model."""
    pace: Callable[[Plan], Pace]

    # check
    examine: Callable[[Splits, TaskConfig], list[Finding]]
    """Everything that can be said of the rows without a vocabulary."""
    too_long: Callable[[str], tuple[Severity, str]] | None
    """What becomes of rows of a split that are longer than max_length; None where any length is as good."""

    # serve
    says: str
    """What its route does."""
    answer: type[BaseModel]

    # what most kinds have alike
    formats: frozenset[str] = frozenset()
    """Of files that can be for nothing else."""
    may_lack: frozenset[str] = frozenset()
    """Roles that have a column only if one is named like them."""
    usable: Callable[[Row], bool] = _any_row
    """Whether the vocabulary may be learnt from it."""
    counts: Callable[[Sequence[Row]], dict[str, int]] = _nothing_counted
    """Of labels in training, the commonest first."""
    counted: str = ""
    """What these are."""
    pieces: Callable[[AnyTask, str, Sequence[Row]], list[list[int]]] = whole_texts
    """What a role's texts become."""
    examine_pieces: Callable[[AnyTask, str, Sequence[Row]], list[Finding]] = _nothing_more
    """What else can be said of a split's rows, once there is a vocabulary."""
    length: Callable[[Sequence[Lengths]], Lengths] = _longest_side
    """Of each row, from how many pieces each of its texts has: what max_length bounds."""
    held_out: str = "every 20th training row is held out"
    """Without validation data."""
    by_character: Callable[[Guess, Mapping[str, Script]], bool] = _by_pieces
    """Whether a first recipe takes every character for a piece."""
    read: Callable[[str, str], str] = _all_of_it
    """What of a role's text a first recipe reads."""
    together: bool = False
    """Whether all texts of a row are read as one."""
    route: str = ""
    """Under which the server is asked; by default its name."""
    asks: tuple[str, ...] = ("text",)
    """What its route is asked with: a text, or the task's inputs by name where there are several."""
    cut: str = "only the beginning was read"
    """What became of a text that was too long."""
    pairs: bool = False
    """Whether its texts may be raw, if a tagger finds the entities to pair."""
    searches: bool = False
    """Whether its answers are searched for, so that settings of the search can be asked for."""

    @property
    def sample(self) -> str:
        """A text that it can answer: a model is ready when it has."""
        return TASKS[self.name].sample

    @property
    def typed(self) -> str:
        """How what it is asked stands on a command line."""
        task = TASKS[self.name]
        return typed(task, task.settings())

    @property
    def is_conversation(self) -> bool:
        return self.name == "dialogue"

    @property
    def path(self) -> str:
        """Of its route."""
        return f"/v1/{self.route or self.name}"
