"""Errors of forecasts beside their definitions, written out value by value; and beside utilsforecast's
definitions of the same names.
"""

import math

import numpy as np
import pytest

from regard.metrics.forecast import error_sums, forecast_scores, pinball

CHANNELS, HORIZON = 3, 7
LEVELS = (0.1, 0.4, 0.9)
SPREAD = np.array([2.0, 0.5, 3.0])
NAIVE = np.array([1.5, 0.2, 4.0])


def made() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    future = rng.normal(3, 4, (CHANNELS, HORIZON))
    point = future + rng.normal(0, 2, (CHANNELS, HORIZON))
    quantiles = np.sort(point[..., None] + rng.normal(0, 2, (CHANNELS, HORIZON, 3)), -1)
    future[1, 2] = future[0, 6] = math.nan
    return np.concatenate([point[..., None], quantiles], -1), future


def test_all_metrics_value_by_value() -> None:
    forecast, future = made()
    found: dict[str, list[float]] = {
        name: [] for name in ("mse", "mae", "smape", "mase", "pinball", "coverage")
    }
    for c in range(CHANNELS):
        for y in range(HORIZON):
            truth, point = future[c, y], forecast[c, y, 0]
            if math.isnan(truth):
                continue
            error = abs(truth - point)
            found["mse"].append((error / SPREAD[c]) ** 2)
            found["mae"].append(error / SPREAD[c])
            found["smape"].append(200 * error / (abs(truth) + abs(point)))
            found["mase"].append(error / NAIVE[c])
            losses = []
            for level, quantile in zip(LEVELS, forecast[c, y, 1:], strict=True):
                over = truth - quantile
                losses.append(level * over if over > 0 else (level - 1) * over)
            found["pinball"].append(sum(losses) / 3 / SPREAD[c])
            found["coverage"].append(100.0 * (forecast[c, y, 1] <= truth <= forecast[c, y, 3]))
    sums = error_sums(forecast, future, SPREAD, NAIVE, LEVELS)
    scores = forecast_scores(sums.sum((0, 1)))
    assert set(scores) == set(found)
    for name, values in found.items():
        assert scores[name] == pytest.approx(sum(values) / len(values)), name


def test_points_alone_have_no_band() -> None:
    forecast, future = made()
    scores = forecast_scores(error_sums(forecast[..., :1], future, SPREAD, NAIVE, LEVELS).sum((0, 1)))
    assert [*scores] == ["mse", "mae", "smape", "mase"]


def test_the_pinball_loss_is_least_at_the_quantile() -> None:
    values = np.random.default_rng(0).normal(size=4001)[None]
    for level in (0.1, 0.5, 0.8):
        at = np.quantile(values, level)
        losses = [
            pinball(np.full((*values.shape, 1), at + apart), values, [level]).mean()
            for apart in (-0.1, 0.0, 0.1)
        ]
        assert np.argmin(losses) == 1


def test_a_forecast_of_zeros_where_zeros_came_is_right() -> None:
    zeros = np.zeros((1, 4))
    scores = forecast_scores(error_sums(zeros[..., None], zeros, np.ones(1), np.ones(1), ()).sum((0, 1)))
    assert scores == {"mse": 0, "mae": 0, "smape": 0, "mase": 0}
