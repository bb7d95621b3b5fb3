"""What is added to the quantiles of a forecaster, measured on validation data: conformalised quantile
regression (Romano et al. 2019), for each channel and quantile, in deviations of each window's own past (Lei
et al. 2018). Series drift, so recent forecasts count more (Barber et al. 2023).
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
    """By channel, for each quantile, in deviations of a window; none before it is calibrated."""

    @classmethod
    def of(
        cls, apart_BCYQ: NDArray[np.floating], levels: Sequence[float], weights_B: NDArray[np.floating]
    ) -> Self:
        """From how many deviations of their window values lie above each quantile, NaN where that is unknown;
        windows have weights.
        """
        by_channel = np.moveaxis(apart_BCYQ, (1, 3), (0, 1))
        return cls(
            tuple(
                tuple(
                    _quantile(apart_BY, level, weights_B)
                    for apart_BY, level in zip(each, levels, strict=True)
                )
                for each in by_channel
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


def _quantile(apart_BY: NDArray[np.floating], level: float, weights_B: NDArray[np.floating]) -> float:
    known_BY = np.isfinite(apart_BY)
    if not known_BY.any():
        return 0.0
    weights_BY = np.broadcast_to(weights_B[:, None], apart_BY.shape)
    found = np.quantile(apart_BY[known_BY], level, weights=weights_BY[known_BY], method="inverted_cdf")
    return float(found)
