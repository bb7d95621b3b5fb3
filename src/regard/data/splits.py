"""Validation data held out of the training data where a recipe gives none.

One pass over all rows finds a border; the rows are then split as they stream by.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Protocol, runtime_checkable

from regard.errors import DataError
from regard.files.documents import goes_on
from regard.files.measurements import Stretch
from regard.files.read import SERIES
from regard.files.row import Row

HELD_OUT = 20
"""Every 20th whole is held out,"""
MOST_HELD_OUT = 2000
"""but no more than this."""
SHARES = (0.7, 0.1, 0.2)
"""Shares of a series for training, validation and test, in the order of time."""
END, MOST_OF_END = 10, 1_000_000
"""The last tenth of a text without documents is held out, at most so many characters."""


class HoldOut(Protocol):
    @property
    def wholes(self) -> str:
        """The users' word for units that are held out as a whole, such as documents."""

    def border(self, rows: Iterable[Row]) -> Any:
        """Read all rows to find the border of the part that is held out."""

    def split(self, border: Any, rows: Iterable[Row], held_out: list[Row]) -> Iterator[Row]:
        """Yields the rows to train on; the others go to `held_out`."""


@runtime_checkable
class HoldsOutTest(HoldOut, Protocol):
    """A hold-out that also has test data: the end of a history or a series."""

    def test(self, border: Any, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows to test with."""


@dataclass(frozen=True)
class Every:
    """Holds out every n-th row; rows that belong together are one whole."""

    wholes: str = "rows"
    together: str | None = None
    """A role: consecutive rows with the same cell there are held out together, and so are those of one
    record.
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
        """Yield rows with the number, from 1, of their unit: a document with all its parts, or neighbours
        that come from one record or have the same cell in the role `together`.
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
class Fold:
    """Holds out one of several parts of all rows as the test, and every 20th of the others for validation."""

    every: Every
    place: int
    """From 1."""
    of: int

    @property
    def wholes(self) -> str:
        return self.every.wholes

    def border(self, rows: Iterable[Row]) -> int:
        n = max((number for number, _ in self.every.numbered(rows)), default=0)
        if n < 2 * self.of:
            raise DataError(f"{n:,} {self.wholes} are too few for {self.of} folds; take fewer folds")
        return min(max(2, n // self.of), max(HELD_OUT, -(-n // MOST_HELD_OUT)))

    def split(self, border: int, rows: Iterable[Row], held_out: list[Row]) -> Iterator[Row]:
        for number, row in self.every.numbered(rows):
            if self._is_tested(number):
                continue
            if ((number - 1) // self.of + 1) % border:
                yield row
            else:
                held_out.append(row)

    def test(self, border: int, rows: Iterable[Row]) -> Iterator[Row]:
        yield from (row for number, row in self.every.numbered(rows) if self._is_tested(number))

    def _is_tested(self, number: int) -> bool:
        """True for one of each block of `of` rows, in an order that no pattern of the data meets."""
        block, inside = divmod(number - 1, self.of)
        order = Random(block).sample(range(self.of), self.of)
        return order[inside] == self.place - 1


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


Lengths = dict[tuple[str, str], int]
"""Rows of each series, by its file and its id."""


@dataclass(frozen=True)
class Borders:
    """Cuts every series at moments in time: training, validation, test.

    A part that is scored begins with the rows before its border that a forecast looks back to; they are
    context and are not forecast again.
    """

    look_back: int
    rows: tuple[int, ...] = ()
    """Rows of each part; later rows are not used."""
    shares: tuple[float, ...] = SHARES
    """Shares of the rows of each series, if `rows` is empty."""
    wholes: str = "steps"

    def border(self, rows: Iterable[Row]) -> Lengths:
        lengths: Lengths = {}
        for row in rows:
            lengths[_series(row)] = lengths.get(_series(row), 0) + len(row.cells[SERIES]["values"])
        for (file, name), n in lengths.items():
            if n < sum(self.rows):
                raise DataError(
                    f"{file}: series {name or 1} has {n:,} rows, but task.split needs {sum(self.rows):,}; "
                    "lower its numbers of rows, or give shares"
                )
        return lengths

    def split(self, border: Lengths, rows: Iterable[Row], held_out: list[Row]) -> Iterator[Row]:
        for begins, row in self._places(rows):
            first, second, *_ = self._cuts(border[_series(row)])
            if (part := _cut(row, begins, 0, 0, first)) is not None:
                yield part
            if (part := _cut(row, begins, max(0, first - self.look_back), first, second)) is not None:
                held_out.append(part)

    def test(self, border: Lengths, rows: Iterable[Row]) -> Iterator[Row]:
        yield from self.part(2, border, rows)

    @property
    def without_test(self) -> "Borders":
        """The same borders where the test data are other files: shares become larger, rows stay."""
        total = sum(self.shares[:2])
        return replace(self, rows=self.rows[:2], shares=tuple(share / total for share in self.shares[:2]))

    def part(self, number: int, border: Lengths, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows of one of the parts: 0 of training, 1 of validation, 2 of test."""
        for begins, row in self._places(rows):
            cuts = (0, *self._cuts(border[_series(row)]))
            first, after = cuts[number], cuts[number + 1]
            if (part := _cut(row, begins, max(0, first - self.look_back), first, after)) is not None:
                yield part

    def _cuts(self, n: int) -> list[int]:
        """The end of each part."""
        if self.rows:
            return [sum(self.rows[: at + 1]) for at in range(len(self.rows))]
        return [round(n * sum(self.shares[: at + 1])) for at in range(len(self.shares))]

    def _places(self, rows: Iterable[Row]) -> Iterator[tuple[int, Row]]:
        """Yield each row with its place in its series."""
        done: Lengths = {}
        for row in rows:
            begins = done.get(_series(row), 0)
            done[_series(row)] = begins + len(row.cells[SERIES]["values"])
            yield begins, row


def _series(row: Row) -> tuple[str, str]:
    return row.file, row.cells[SERIES]["id"]


def _cut(row: Row, begins: int, context: int, first: int, after: int) -> Row | None:
    """The overlap of a row, which begins there in its series, with a part and its context; None if empty."""
    cell = row.cells[SERIES]
    begin, end = max(context - begins, 0), min(after - begins, len(cell["values"]))
    if begin >= end:
        return None
    kept = {name: cell[name] and cell[name][begin:end] for name in ("values", "known", "time")}
    opens = begins + begin == context
    times = cell["time"]
    before = None if opens or times is None else times[begin - 1] if begin else cell["before"]
    n_context = min(max(first - begins - begin, 0), end - begin)
    stretch = Stretch(cell | kept | {"goes_on": not opens, "before": before, "context": n_context})
    return replace(row, cells=row.cells | {SERIES: stretch})


def closes(row: Row) -> bool:
    """True if the next row begins another document."""
    return not any(isinstance(cell, str) and goes_on(cell) for cell in row.cells.values())
