"""Hold-outs of histories: each held-out row is a history whose last item is the one to recommend."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from regard.errors import DataError
from regard.files.row import Row

LEAST = 3
"""Shortest history whose last two items are held out."""
MOST_VALIDATED, MOST_TESTED = 10_000, 100_000
"""Most histories that are scored; of more, an evenly spread sample."""


@dataclass(frozen=True)
class LastOf:
    """Leave-last-out: the last item of every history is for the test, the one before it for validation.

    A history of fewer than three items is for training only.
    """

    wholes: str = "users"

    def border(self, rows: Iterable[Row]) -> int:
        """The number of histories."""
        return sum(1 for _ in rows)

    def split(self, border: int, rows: Iterable[Row], held_out: list[Row]) -> Iterator[Row]:
        every = _every(border, MOST_VALIDATED)
        for number, row in enumerate(rows):
            n = len(row.cells["items"])
            yield row if n < LEAST else beginning(row, n - 2)
            if n >= LEAST and number % every == 0:
                held_out.append(beginning(row, n - 1))

    def test(self, border: int, rows: Iterable[Row]) -> Iterator[Row]:
        every = _every(border, MOST_TESTED)
        for number, row in enumerate(rows):
            if len(row.cells["items"]) >= LEAST and number % every == 0:
                yield row


@dataclass(frozen=True)
class AtTime:
    """Global temporal split: training before one moment, validation after it, the test after a later one.

    The item to recommend is the first after the moment, from all before it. So nothing is learnt from later
    than the test, which leave-last-out does.
    """

    shares: tuple[float, float] = (0.8, 0.9)
    """Shares of all interactions before the two moments."""
    wholes: str = "users"

    def border(self, rows: Iterable[Row]) -> tuple[float, float]:
        times = array("d")
        for row in rows:
            if "times" not in row.cells:
                raise DataError(
                    f"{row.file}: has no column of times, so it cannot be split at a moment; name the column "
                    'with data.columns.time, or set task.split = "last"'
                )
            times.extend(row.cells["times"])
        first, second = np.quantile(np.frombuffer(times), self.shares)
        return float(first), float(second)

    def split(self, border: tuple[float, float], rows: Iterable[Row], held_out: list[Row]) -> Iterator[Row]:
        for row in rows:
            n_before, n_until = (bisect_left(row.cells["times"], moment) for moment in border)
            if n_before:
                yield beginning(row, n_before)
            if 0 < n_before < n_until and len(held_out) < MOST_VALIDATED:
                held_out.append(beginning(row, n_before + 1))

    def test(self, border: tuple[float, float], rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            n_before = bisect_left(row.cells["times"], border[1])
            if 0 < n_before < len(row.cells["times"]):
                yield beginning(row, n_before + 1)


def beginning(row: Row, n: int) -> Row:
    """The first n items of a history."""
    cells = {name: cell[:n] if isinstance(cell, list) else cell for name, cell in row.cells.items()}
    return replace(row, cells=cells)


def _every(n: int, most: int) -> int:
    return max(1, -(-n // most))
