"""Baselines of pictures: logistic regression on pixels, and the class with the nearest mean."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from regard.baselines.baseline import Baseline
from regard.baselines.scikit import LogisticRegression
from regard.fields.field import Arrays
from regard.fields.image import Image
from regard.fields.video import Video
from regard.files.row import Row

SIDE = 32
"""Longest side of the scaled pictures."""
MOST = 10_000
"""Most pictures that are learnt from; more improve a linear map of pixels little."""
C, STEPS = 1e-3, 50
"""Inverse regularisation and number of steps, for pixels of deviation 1."""

Rows = NDArray[np.float32]
Still = Callable[[Arrays], NDArray[Any]]


class Pixels:
    """The pixels of scaled pictures, each with mean 0 and deviation 1."""

    def __init__(self, task: Any, rows: Sequence[Row], still: "Still | None" = None) -> None:
        """Take `still`, which makes a picture of what a field encodes, if that is not one."""
        self.still = still or (lambda arrays: np.asarray(arrays["pixels"]))
        ((self.role, field),) = task.given.items()
        n_rows, n_columns, n_channels = field.shape
        shape = min(SIDE, n_rows), min(SIDE, n_columns), n_channels
        self.field = replace(field, shape=shape)
        self.rows = rows[:: -(-len(rows) // MOST)]
        raw_NF = self._raw(self.rows)
        self.mean_F, self.deviation_F = raw_NF.mean(0), raw_NF.std(0).clip(1)
        self.learnt_NF = (raw_NF - self.mean_F) / self.deviation_F

    def of(self, rows: Sequence[Row]) -> Rows:
        rows_NF: Rows = (self._raw(rows) - self.mean_F) / self.deviation_F
        return rows_NF

    def _raw(self, rows: Sequence[Row]) -> Rows:
        values = [self.field.parse(row.cells[self.role], row.where) for row in rows]
        pixels = [self.still(coded.arrays).reshape(-1) for coded in self.field.encode(values)]
        return np.array(pixels, np.float32)


def labels_of(task: Any, rows: Sequence[Row]) -> list[Any]:
    return [task.label.parse(row.cells["label"], row.where) for row in rows]


class PixelRegression(Baseline):
    name: ClassVar[str] = "pixels + logistic regression"
    still: ClassVar["Still | None"] = None
    reads: ClassVar[type] = Image

    def __init__(self, task: Any, rows: Sequence[Row]) -> None:
        self.pixels = Pixels(task, rows, type(self).still)
        self.regression = LogisticRegression(
            self.pixels.learnt_NF,
            labels_of(task, self.pixels.rows),
            C,
            getattr(task.config, "threshold", 0.5),
            STEPS,
        )

    @classmethod
    def suits(cls, task: Any) -> bool:
        return isinstance(task.input, cls.reads)

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(task, rows)

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        return self.regression.answers(self.pixels.of([one.row for one in examples]))


def _middle(arrays: Arrays) -> NDArray[Any]:
    frames_TYXC = np.asarray(arrays["frames"])
    middle_YXC: NDArray[Any] = frames_TYXC[len(frames_TYXC) // 2]
    return middle_YXC


def _mean(arrays: Arrays) -> NDArray[Any]:
    mean_YXC: NDArray[Any] = np.asarray(arrays["frames"]).mean(0)
    return mean_YXC


class OneFrame(PixelRegression):
    """What the frame in the middle of a clip tells: a class that is a motion cannot be known from it."""

    name: ClassVar[str] = "one frame, pixels + logistic regression"
    still: ClassVar["Still | None"] = staticmethod(_middle)
    reads: ClassVar[type] = Video


class MeanFrame(PixelRegression):
    """What the mean of all frames tells, which has no order in time."""

    name: ClassVar[str] = "mean frame, pixels + logistic regression"
    still: ClassVar["Still | None"] = staticmethod(_mean)
    reads: ClassVar[type] = Video


class NearestMean(Baseline):
    """The label whose pictures have the nearest mean; not for pictures with several labels."""

    name: ClassVar[str] = "nearest class mean"

    def __init__(self, task: Any, rows: Sequence[Row]) -> None:
        self.pixels = Pixels(task, rows)
        labels = np.array(labels_of(task, self.pixels.rows))
        self.names = sorted(set(labels.tolist()))
        self.means_CF = np.stack([self.pixels.learnt_NF[labels == name].mean(0) for name in self.names])

    @classmethod
    def suits(cls, task: Any) -> bool:
        return isinstance(task.input, Image) and task.target_name == "label"

    @classmethod
    def fit(cls, task: Any, rows: Sequence[Row]) -> Self:
        return cls(task, rows)

    def answers(self, examples: Sequence[Any]) -> Sequence[Any]:
        rows_NF = self.pixels.of([one.row for one in examples])
        products_NC = rows_NF @ self.means_CF.T
        nearest_N = (products_NC - (self.means_CF**2).sum(-1) / 2).argmax(-1)
        return [self.names[n] for n in nearest_N.tolist()]
