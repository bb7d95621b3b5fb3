"""A sample of somebody's files, column by column, before it is known what they are for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any, Self

from regard.fields.label import Label
from regard.fields.text import Text
from regard.files.columns import Column
from regard.files.formats import file_format

Columns = Mapping[Column, Sequence[str]]
"""Column → values of a sample of rows, where all of them are strings."""
Picked = tuple[Column | None, str]
"""The column of a role and why; without a column, why it cannot be told, if there is anything to say."""
LONGEST_ID = 64
"""Characters of the name of a thing."""


@dataclass(frozen=True)
class Table:
    """The sampled rows of the training files."""

    files: tuple[str, ...]
    cells: Mapping[Column, Sequence[Any]]
    """Cells as in the files, of the columns that every row has; by name, or by number from 1."""

    @cached_property
    def texts(self) -> Columns:
        """The columns whose cells are all strings, as numbers are too; truth values as they are written."""
        return {
            column: [str(cell).lower() if isinstance(cell, bool) else cell for cell in cells]
            for column, cells in self.cells.items()
            if all(isinstance(cell, str | bool) for cell in cells)
        }

    @property
    def names(self) -> list[str]:
        return [column for column in self.cells if isinstance(column, str)]

    def without(self, columns: Iterable[Column | None]) -> Self:
        gone = set(columns)
        return replace(self, cells={name: cells for name, cells in self.cells.items() if name not in gone})

    def called(self, column: Column | None) -> str:
        """A user's word for a column: plain text files are the columns of one table."""
        are_columns = len(self.files) > 1 and file_format(self.files[0]) == "text"
        return self.files[int(column or 1) - 1] if are_columns else f"column {column}"


def labels(columns: Columns) -> list[Column]:
    return [column for column, values in columns.items() if Label.resembles(values) > 0.5]


def texts(columns: Columns) -> list[Column]:
    return [column for column, values in columns.items() if Text.resembles(values) > 0.5]


def longest_text(columns: Columns) -> Picked:
    found = texts(columns)
    if not found:
        return None, ""
    return max(found, key=lambda column: fmean(map(len, columns[column]))), "it holds the longest texts"


def only_label(table: Table) -> Picked:
    """The one column of labels."""
    found = labels(table.texts)
    if len(found) == 1:
        return found[0], f"it holds only {len(set(table.texts[found[0]]))} different short values"
    if not found:
        return None, ""
    first, second, *_ = map(table.called, found)
    return None, f"{first} and {second} both hold few different short values"
