"""Errors of forecasts, as sums over known values, so that they add up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regard.metrics.resample import Scores, unweighted
from regard.metrics.tally import Columns

Floats = NDArray[Any]

METRICS = ("mse", "mae", "smape", "mase", "pinball", "coverage")


def pinball(quantiles_CYQ: Floats, future_CY: Floats, levels: Sequence[float]) -> Floats:
    """The pinball loss (Koenker & Bassett 1978) of each value, the mean over the quantiles."""
    above_CYQ = future_CY[..., None] - quantiles_CYQ
    levels_Q = np.asarray(levels)
    loss_CY: Floats = np.maximum(levels_Q * above_CYQ, (levels_Q - 1) * above_CYQ).mean(-1)
    return loss_CY


def error_sums(
    forecast_CYJ: Floats,
    future_CY: Floats,
    spread_C: Floats,
    naive_error_C: Floats,
    levels: Sequence[float],
) -> Floats:
    """sums_CYS of one forecast (the mean, then quantiles if there are any) beside what came.

    Squared and absolute errors and the pinball loss are divided by `spread_C`, as on the scale of training;
    the absolute scaled error (MASE, Hyndman & Koehler 2006) by the error of the seasonal naive forecast. What
    is NaN counts for nothing. The last two of the seven sums are NaN where there are no quantiles.
    """
    future_CY = np.asarray(future_CY, np.float64)
    point_CY = np.asarray(forecast_CYJ[..., 0], np.float64)
    spread_C1, error_CY = np.asarray(spread_C)[:, None], np.abs(point_CY - future_CY)
    size_CY = np.abs(point_CY) + np.abs(future_CY)
    scaled_CY = error_CY / spread_C1
    relative_CY = np.divide(200 * error_CY, size_CY, out=np.zeros_like(error_CY), where=size_CY > 0)
    naive_error_C1 = np.asarray(naive_error_C)[:, None]
    sums = [np.ones_like(error_CY), scaled_CY**2, scaled_CY, relative_CY, error_CY / naive_error_C1]
    if forecast_CYJ.shape[-1] > 1:
        quantiles_CYQ = np.asarray(forecast_CYJ[..., 1:], np.float64)
        inside_CY = (quantiles_CYQ[..., 0] <= future_CY) & (future_CY <= quantiles_CYQ[..., -1])
        sums += [pinball(quantiles_CYQ, future_CY, levels) / spread_C1, 100.0 * inside_CY]
    else:
        sums += [np.full_like(error_CY, np.nan)] * 2
    sums_CYS: Floats = np.where(np.isnan(future_CY)[..., None], 0.0, np.stack(sums, -1))
    return sums_CYS


def forecast_scores(sums_RS: Floats) -> dict[str, Floats]:
    """The metrics of sums: MSE, MAE, sMAPE, MASE; of forecasts with quantiles also pinball loss and coverage
    of the band, in percent.
    """
    n_R = np.maximum(sums_RS[..., 0], 1e-300)
    found = zip(METRICS, np.moveaxis(sums_RS[..., 1:], -1, 0), strict=True)
    return {name: each_R / n_R for name, each_R in found if not np.isnan(each_R).any()}


@dataclass(frozen=True)
class ForecastTally(Columns):
    """Sums of errors of every window, by channel and by part of the horizon.

    Windows that have steps in common are no independent examples: they are resampled in blocks of
    `block` steps.
    """

    has_loss: ClassVar[bool] = True
    channels: tuple[str, ...]
    parts: tuple[str, ...]
    loss: str
    block: int
    origins: list[int] = field(default_factory=list)
    by_channel: list[Floats] = field(default_factory=list)
    by_part: list[Floats] = field(default_factory=list)

    @cached_property
    def _blocks_N(self) -> Any:
        """The number of the block that each window is in."""
        origins_N = np.array(self.origins)
        before_N = np.concatenate([origins_N[:1], origins_N[:-1]])
        begins_N = (origins_N // self.block != before_N // self.block) | (origins_N <= before_N)
        begins_N[:1] = False
        return np.cumsum(begins_N)

    @cached_property
    def _sums_NS(self) -> Floats:
        """Sums of each block."""
        whole_NS = np.stack(self.by_part).sum(1)
        sums_NS = np.zeros((len(self.truth), whole_NS.shape[1]))
        np.add.at(sums_NS, self._blocks_N, whole_NS)
        return sums_NS

    @property
    def truth(self) -> list[int]:
        """Number of values in each block."""
        counts = np.bincount(self._blocks_N, np.stack(self.by_part)[..., 0].sum(1))
        return [int(count) for count in counts]

    def weighed(self, weights_RN: Floats) -> Scores:
        return self._scores(np.asarray(weights_RN) @ self._sums_NS)

    def _scores(self, sums_RS: Floats) -> Scores:
        scores = forecast_scores(sums_RS)
        if "pinball" not in scores:
            return scores
        return {"loss": scores[self.loss] + scores["pinball"]} | scores

    def metrics(self) -> dict[str, float]:
        scores = unweighted(self)
        return scores if "loss" in scores else {"loss": scores[self.loss]} | scores

    def signatures(self) -> dict[str, str]:
        return {}

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Scores of each channel, and of each part of the horizon."""
        kinds = {
            **dict(zip(self.channels, np.sum(self.by_channel, 0), strict=True)),
            **dict(zip(self.parts, np.sum(self.by_part, 0), strict=True)),
        }
        return {
            name: {metric: float(score) for metric, score in forecast_scores(sums_S).items()}
            for name, sums_S in kinds.items()
        }
