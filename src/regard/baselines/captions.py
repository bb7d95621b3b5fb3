"""Captions by those who do not look: the commonest one, and that of the picture with the nearest pixels."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from regard.baselines.baseline import Baseline
from regard.files.row import Row

SIDE = 16
"""Longest side of the pictures that are compared."""
TOGETHER = 256


class CommonestCaption(Baseline):
    """The commonest caption of the training data, whatever is to be seen."""

    name: ClassVar[str] = "commonest caption"

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(Counter(text for row in rows for text in row.cells["captions"]).most_common(1)[0][0])

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return [self.text] * len(examples)


class NearestPicture(Baseline):
    """The first caption of the training picture whose pixels are nearest."""

    name: ClassVar[str] = "caption of the nearest picture (pixels)"

    def __init__(self, task: Any, rows: Sequence[Row]) -> None:
        self.side = min(SIDE, *task.source.shape[:2])
        rows = [row for row in rows if row.cells["captions"]]
        examples = task.encode(rows)
        self.pixels_NF = self._small(examples)
        self.texts = [row.cells["captions"][0] for row in rows]

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(task, rows)

    def _small(self, examples: Sequence[Any]) -> Any:
        """Every so many pixels in both directions, as one row of numbers."""
        small = []
        for example in examples:
            pixels_YXC = np.asarray(example.arrays["pixels"])
            rows, columns = (
                np.linspace(0, n - 1, self.side).round().astype(int) for n in pixels_YXC.shape[:2]
            )
            small.append(pixels_YXC[rows[:, None], columns].reshape(-1))
        return np.array(small, np.float32)

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        squares_N = (self.pixels_NF**2).sum(1)
        found: list[str] = []
        for begin in range(0, len(examples), TOGETHER):
            pixels_BF = self._small(examples[begin : begin + TOGETHER])
            nearest_B = (squares_N - 2 * pixels_BF @ self.pixels_NF.T).argmin(1)
            found += [self.texts[at] for at in nearest_B]
        return found
