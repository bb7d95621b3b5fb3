"""Errors of forecasts, as sums over known values, so that they add up."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
