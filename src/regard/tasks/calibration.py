"""What is added to the quantiles of a forecaster, measured on validation data: conformalised quantile
regression (Romano et al. 2019), for each channel and quantile.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from regard.errors import CheckpointError

NAME = "calibration.json"


@dataclass(frozen=True)
class Calibration:
    offsets: tuple[tuple[float, ...], ...] = ()
    """By channel, for each quantile, on the scale of the training data; none before it is calibrated."""

    @classmethod
    def of(cls, apart_BCYQ: NDArray[np.floating], levels: Sequence[float]) -> Self:
        """From how far values lie above each quantile, NaN where that is unknown."""
        flat_CQN = np.moveaxis(apart_BCYQ, (1, 3), (0, 1)).reshape(*np.array(apart_BCYQ.shape)[[1, 3]], -1)
        return cls(
            tuple(
                tuple(_quantile(apart_N, level) for apart_N, level in zip(each_QN, levels, strict=True))
                for each_QN in flat_CQN
            )
        )

    def save(self, folder: Path) -> None:
        (folder / NAME).write_text(json.dumps({"offsets": self.offsets}) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path, shape: tuple[int, int]) -> Self:
        """`shape` is how many channels and quantiles there are."""
        try:
            saved = json.loads((folder / NAME).read_text("utf-8"))["offsets"]
            offsets = tuple(tuple(map(float, each)) for each in saved)
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise CheckpointError(
                f"{folder / NAME}: cannot be read ({error}); copy the whole folder"
            ) from error
        is_whole = len(offsets) == shape[0] and {len(each) for each in offsets} == {shape[1]}
        if offsets and not (is_whole and np.isfinite(offsets).all()):
            raise CheckpointError(
                f"{folder / NAME}: should hold a number for each of {shape[0]} channels and {shape[1]} "
                "quantiles; copy the whole folder"
            )
        return cls(offsets)


UNCALIBRATED = Calibration()


def _quantile(apart_N: NDArray[np.floating], level: float) -> float:
    known_N = apart_N[np.isfinite(apart_N)]
    return float(np.quantile(known_N, level)) if len(known_N) else 0.0
