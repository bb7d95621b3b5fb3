"""Windows of series: every place in a series from which its next steps can be forecast is an example.

A window is the past that is read and the future to forecast. None is made in advance: a window is a slice of
one mapped array, found by its number, and all have one size. So 10⁸ windows take the room of the series.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from regard.data.cache import Arrays, Encoder, Examples
from regard.errors import DataError
from regard.files.row import Row


class Windowing(Encoder, Protocol):
    """An encoder whose rows are series, or consecutive stretches of one, learnt from in windows.

    Its arrays are `steps`, perhaps `known`, `opens` (1 where a series begins), and `context` (its steps).
    """

    @property
    def look_back(self) -> int:
        """Steps that are read."""

    @property
    def horizon(self) -> int:
        """Steps that are forecast."""


class Windows(Examples):
    def __init__(
        self,
        encoder: Windowing,
        arrays: Arrays,
        files: Sequence[str],
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(encoder, arrays, files, left_out)
        self.look_back, self.horizon = encoder.look_back, encoder.horizon
        self.n_short = 0
        """The number of series too short for a single window."""
        if not self.columns:
            return
        self._steps = self.columns["steps"]
        opens = np.flatnonzero(self.columns["opens"].values)
        begins = np.append(0, self._steps.ends)[opens]
        ends = np.append(begins[1:], self._steps.ends[-1])
        context = np.add.reduceat(self.columns["context"].values.astype(np.int64), opens)
        self._origins = begins + np.maximum(context, self.look_back)
        """The first step to forecast in the first window of each series."""
        counts = np.maximum(0, ends - self.horizon - self._origins + 1)
        self.n_short = int((counts == 0).sum())
        self._after = np.cumsum(counts)
        """The number of the first window after each series."""
        self.sizes = np.broadcast_to(np.array([[self.look_back]], np.int32), (int(self._after[-1]), 1))

    def __getitem__(self, i: Any) -> Any:
        origin = self.origin(i)
        window = slice(origin - self.look_back, origin + self.horizon)
        parts: dict[str, Any] = {
            name: self.columns[name].values[window] for name in ("steps", "known") if name in self.columns
        }
        return self._encoder.revive(self.row(i), parts | {"origin": np.array([origin])})

    def origin(self, i: int) -> int:
        """The place of the first step to forecast, among the steps of all series."""
        if not 0 <= i < len(self):
            raise IndexError(i)
        series = int(np.searchsorted(self._after, i, side="right"))
        first = int(self._after[series - 1]) if series else 0
        return int(self._origins[series]) + i - first

    def age(self, i: int) -> float:
        """The share of the windows of its series that come after it, from 0 to 1."""
        series = int(np.searchsorted(self._after, i, side="right"))
        first, after = int(self._after[series - 1]) if series else 0, int(self._after[series])
        return (after - 1 - i) / (after - first)

    def row(self, i: int) -> Row:
        """The row of the first step to forecast."""
        return super().row(int(np.searchsorted(self._steps.ends, self.origin(i), side="right")))

    def refuse_unfit(self, name: str) -> None:
        """Raise DataError if every series is shorter than a window."""
        if not len(self):
            longest = int(np.diff(self._steps.ends, prepend=0).max()) if self.columns else 0
            needed = self.look_back + self.horizon
            raise DataError(
                f"{name}: the longest series has {longest:,} steps, "
                f"but a window has {needed:,} (task.look_back "
                f"{self.look_back:,} and task.horizon {self.horizon:,}); "
                "give longer series, or lower these settings"
            )
