"""Histories of items in windows: a long history gives an example for every so many of its items.

Windows are anchored at the end of a history. None of them is made in advance, a window is a slice of the
mapped array. What is random in an example is drawn from (seed, epoch, example).
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Protocol, Self

import numpy as np

from regard.data.cache import Arrays, Encoder, Examples
from regard.files.row import Row

DRAWN = 7
"""Sets these random numbers apart from others of the same epoch and example."""


class Windowing(Encoder, Protocol):
    """An encoder that keeps `items`, and perhaps `times` beside them, of whole histories."""

    @property
    def overlap(self) -> int:
        """Items that a window has in common with the one before it."""

    @property
    def window(self) -> int:
        """Items of a window at most."""

    def windowed(self, row: Row, arrays: Arrays, rng: np.random.Generator) -> Any:
        """The example of a window."""

    def tested(self, rows: Sequence[Row]) -> list[Any]:
        """Examples whose last item is what is to be recommended."""


class WindowedHistories(Examples):
    def __init__(
        self,
        encoder: Windowing,
        arrays: Arrays,
        files: Sequence[str],
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(encoder, arrays, files, left_out)
        self._windowing, self._drawn_from = encoder, (0, 0)
        if not self.columns:
            return
        lengths_H = np.diff(self.columns["items"].ends, prepend=0)
        step = encoder.window - encoder.overlap
        counts_H = np.maximum(1, -(-(lengths_H - encoder.overlap) // step))
        self._after_H = np.cumsum(counts_H)
        """The number of the window after the last of each history."""
        sizes = np.full(int(self._after_H[-1]), encoder.window, np.int32)
        sizes[self._after_H - counts_H] = lengths_H - (counts_H - 1) * step  # the first window has the rest
        self.sizes = (sizes - encoder.overlap)[:, None]

    @classmethod
    def scored(cls, encoder: Any, rows: Iterable[Row]) -> Sequence[Any]:
        """Histories whose last item is to be recommended, whole."""
        found: list[Any] = encoder.tested(list(rows))
        return found

    def in_epoch(self, seed: int, epoch: int) -> Self:
        drawn = copy(self)
        drawn._drawn_from = seed, epoch
        return drawn

    def __getitem__(self, i: Any) -> Any:
        if not 0 <= i < len(self):
            raise IndexError(i)
        history = int(np.searchsorted(self._after_H, i, "right"))
        step = self._windowing.window - self._windowing.overlap
        stop = (int(self._after_H[history]) - 1 - i) * step
        arrays = {name: column[history] for name, column in self.columns.items()}
        end = len(arrays["items"]) - stop
        begin = max(0, end - self._windowing.window)
        window = {name: array[begin:end] for name, array in arrays.items()}
        rng = np.random.default_rng((*self._drawn_from, i, DRAWN))
        return self._windowing.windowed(self.row(i), window, rng)

    def row(self, i: int) -> Row:
        return super().row(int(np.searchsorted(self._after_H, i, "right")))
