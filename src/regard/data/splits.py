"""Validation data held out of the training data where a recipe gives none.

What is held out is decided by a border, read off all rows once; the rows are then split as they stream by.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from regard.files.documents import goes_on
from regard.files.row import Row

HELD_OUT = 20
"""Every 20th whole is held out,"""
MOST_HELD_OUT = 2000
"""but no more than this."""
END, MOST_OF_END = 10, 1_000_000
"""Of a text without documents its last tenth is held out, but no more than so many characters."""


class HoldOut(Protocol):
    @property
    def wholes(self) -> str:
        """What users call the things that are held out as a whole."""

    def border(self, rows: Iterable[Row]) -> int:
        """Reads all rows to find what is held out."""

    def split(self, border: int, rows: Iterable[Row], held_out: list[Row]) -> Iterator[Row]:
        """Yields the rows to train on; the others go to `held_out`."""


@dataclass(frozen=True)
class Every:
    """Holds out every n-th row; rows that belong together are one whole."""

    wholes: str = "rows"
    together: str | None = None
    """The role whose rows, where they follow one another and are the same in it, are held out together.

    So are those of one record.
    """

    def border(self, rows: Iterable[Row]) -> int:
        n = max((number for number, _ in self.numbered(rows)), default=0)
        return max(HELD_OUT, -(-n // MOST_HELD_OUT))

    def split(self, border: int, rows: Iterable[Row], held_out: list[Row]) -> Iterator[Row]:
        for number, row in self.numbered(rows):
            if number % border:
                yield row
            else:
                held_out.append(row)

    def numbered(self, rows: Iterable[Row]) -> Iterator[tuple[int, Row]]:
        """Yields rows with the number, from 1, of the whole they belong to: a document with all its parts, or
        neighbours that come from one record or have the same in the role `together`.
        """
        number, before = 1, None
        for row in rows:
            number += before is not None and not self._are_one(before, row)
            yield number, row
            before = row

    def _are_one(self, before: Row, row: Row) -> bool:
        if self.together is not None:
            of_one_record = (before.file, before.line) == (row.file, row.line)
            return of_one_record or before.cells[self.together] == row.cells[self.together]
        return not closes(before)


@dataclass(frozen=True)
class End:
    """Holds out the end of a text, whatever rows it is read in; a row across the border is cut."""

    wholes: str = "documents"
    role: str = "text"

    def border(self, rows: Iterable[Row]) -> int:
        n_characters = sum(len(row.cells[self.role]) for row in rows)
        return n_characters - min(n_characters // END, MOST_OF_END)

    def split(self, border: int, rows: Iterable[Row], held_out: list[Row]) -> Iterator[Row]:
        left = border
        for row in rows:
            text = row.cells[self.role]
            if left > 0:
                yield row if left >= len(text) else replace(row, cells={self.role: text[:left]})
            if left < len(text):
                held_out.append(replace(row, cells={self.role: text[max(0, left) :]}))
            left -= len(text)


def closes(row: Row) -> bool:
    """Whether the next row is another document, and not a part of the same."""
    return not any(isinstance(cell, str) and goes_on(cell) for cell in row.cells.values())
