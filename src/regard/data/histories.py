"""Histories of items in windows: a long history gives several examples.

Windows are anchored at the end of a history. None is made in advance: a window is a slice of the mapped
array.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from regard.data.cache import Arrays, Encoder, Examples
from regard.files.row import Row


class Windowing(Encoder, Protocol):
    """An encoder that keeps `items`, and perhaps `times` beside them, of whole histories."""

    @property
    def overlap(self) -> int:
        """Items that a window shares with the one before it."""

    @property
    def window(self) -> int:
        """Most items of a window."""

    def tested(self, rows: Sequence[Row]) -> list[Any]:
        """Examples whose last item is the one to recommend."""


class WindowedHistories(Examples):
    def __init__(
        self,
        encoder: Windowing,
        arrays: Arrays,
        files: Sequence[str],
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(encoder, arrays, files, left_out)
        self.window, self.step = encoder.window, encoder.window - encoder.overlap
        if not self.columns:
            return
        lengths_H = np.diff(self.columns["items"].ends, prepend=0)
        counts_H = np.maximum(1, -(-(lengths_H - encoder.overlap) // self.step))
        self._after_H = np.cumsum(counts_H)
        """The number of the first window after each history."""
        sizes = np.full(int(self._after_H[-1]), self.step, np.int32)
        sizes[self._after_H - counts_H] = lengths_H - encoder.overlap - (counts_H - 1) * self.step
        self.sizes = sizes[:, None]

    @classmethod
    def scored(cls, encoder: Any, rows: Iterable[Row]) -> Sequence[Any]:
        """Whole histories whose last item is the one to recommend."""
        examples: list[Any] = encoder.tested(list(rows))
        return examples

    def kept(self, i: int) -> Arrays:
        if not 0 <= i < len(self):
            raise IndexError(i)
        history = self._history(i)
        whole = super().kept(history)
        end = len(whole["items"]) - (int(self._after_H[history]) - 1 - i) * self.step
        return {name: array[max(0, end - self.window) : end] for name, array in whole.items()}

    def row(self, i: int) -> Row:
        return super().row(self._history(i))

    def _history(self, i: int) -> int:
        """The number of the history that a window is cut from."""
        return int(np.searchsorted(self._after_H, i, "right"))
