"""The data of a task: how `init` recognises them, the first recipe they get, what `check` finds in them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.check.finding import Finding, Severity
from regard.check.rows import Splits
from regard.fields import FIELDS
from regard.fields.field import Suggestion
from regard.files.columns import Column
from regard.files.row import Row, text_of
from regard.init.columns import Picked, Table
from regard.init.guess import Guess
from regard.init.match import Fit, Given, Match, Missing, find_roles
from regard.init.plan import Plan, Script
from regard.init.settings import Pace, Setting

Lengths = NDArray[np.int64]


def _nothing_counted(rows: Sequence[Row]) -> dict[str, int]:
    return {}


def _nothing_more(task: Any, split: str, rows: Sequence[Row]) -> list[Finding]:
    return []


def _any_file(file: str) -> bool:
    return True


def _any_row(row: Row) -> bool:
    return True


def _by_tokens(guess: Guess, scripts: Mapping[str, Script]) -> bool:
    return False


def _all_of_it(role: str, text: str) -> str:
    return text


def _longest_side(lengths: Sequence[Lengths]) -> Lengths:
    longest: Lengths = np.max(lengths, axis=0)
    return longest


def whole_texts(task: Any, role: str, rows: Sequence[Row]) -> list[list[int]]:
    ids: list[list[int]] = task.tokenizers[role].ids([text_of(row.cells[role]) for row in rows])
    return ids


@dataclass(frozen=True)
class TaskData:
    roles: tuple[str, ...]
    texts: tuple[str, ...]
    """Roles that hold text."""

    # init
    pick: Callable[[str, Table], Picked]
    """The column of a role, of those that no other role has."""
    fit: Callable[[Table, Mapping[str, Column | None]], Fit]
    """Rating of how special it is that the columns of these roles are as they are."""
    sections: Callable[[Plan], Mapping[str, Sequence[Setting]]]
    """Sections of a first recipe: the task and the model."""
    pace: Callable[[Plan], Pace]

    # check
    examine: Callable[[Splits, Any], list[Finding]]
    """Findings in the rows that need no vocabulary."""
    too_long: Callable[[str], tuple[Severity, str]] | None
    """Fate of rows of a split that are longer than max_length; None where any length is as good."""

    # what most kinds have alike
    holds: Callable[[str], bool] = _any_file
    """True if a file of such a format is for it, where a format alone leaves several tasks."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Role → kind of data, of inputs that are no texts where the task alone says so."""
    formats: frozenset[str] = frozenset()
    """Formats of files that can be for nothing else."""
    may_lack: frozenset[str] = frozenset()
    """Roles that have a column only if one is named like them."""
    usable: Callable[[Row], bool] = _any_row
    """True if the vocabulary may be learnt from it."""
    counts: Callable[[Sequence[Row]], dict[str, int]] = _nothing_counted
    """Counts of labels in training, the commonest first."""
    counted: str = ""
    """Heading of these counts."""
    tokens: Callable[[Any, str, Sequence[Row]], list[list[int]]] = whole_texts
    """Token ids of a role's texts."""
    examine_tokens: Callable[[Any, str, Sequence[Row]], list[Finding]] = _nothing_more
    """Findings in a split's rows that need the vocabulary."""
    length: Callable[[Sequence[Lengths]], Lengths] = _longest_side
    """Length of each row that max_length bounds, from the numbers of tokens of its texts."""
    held_out: str = "every 20th training row is held out"
    """Remark in a recipe without validation data."""
    by_character: Callable[[Guess, Mapping[str, Script]], bool] = _by_tokens
    """True if a first recipe takes every character for a token."""
    read: Callable[[str, str], str] = _all_of_it
    """Part of a role's text that a first recipe reads."""
    together: bool = False
    """True if all texts of a row are read as one."""
    amount: Callable[[Sequence[Row]], tuple[int, str]] | None = None
    """Amount that rows hold, and its unit, where the rows themselves are not counted."""
    tested: str = "the score on validation data will be the only one"
    """Remark in a recipe without test data."""

    @property
    def possible_roles(self) -> frozenset[str]:
        """Roles that a column can be given for."""
        return frozenset(self.roles)

    @property
    def is_one_text(self) -> bool:
        """True if a row is nothing but a text, so that files of plain text follow one another."""
        return len(self.roles) == 1

    def suggestions(self, guess: Guess, decided: Mapping[str, Mapping[str, Any]]) -> dict[str, Suggestion]:
        """Settings of the inputs that are no texts for a first recipe, beside what their columns decide."""
        suggested = {
            role: FIELDS[kind].suggest([row.cells[role] for row in guess.sample])
            for role, kind in guess.kinds.items()
        }
        return {
            role: one._replace(settings={**decided.get(role, {}), **one.settings})
            for role, one in suggested.items()
        }

    def recognise(self, table: Table, given: Given) -> Match | Missing:
        """Recognise a table that is for this task."""
        match = find_roles(table, self.roles, self.texts, self.may_lack, self.pick, given)
        return match if isinstance(match, Missing) else match.match(self.fit(table, match.roles))
