"""Forecasts without a model, beside loops."""

import numpy as np
import pytest

from regard.baselines.naive import repeated


def by_hand(steps: np.ndarray, season: int, horizon: int) -> np.ndarray:
    """Each step of the future by going back season by season, then step by step."""
    found = np.zeros((steps.shape[1], horizon, 1))
    for c in range(steps.shape[1]):
        column = steps[:, c]
        for y in range(horizon):
            at = len(column) - season + y % season
            while at >= 0 and np.isnan(column[at]):
                at -= season
            if at >= 0:
                found[c, y] = column[at]
            elif np.isfinite(column).any():
                found[c, y] = column[np.isfinite(column)][-1]
    return found


@pytest.mark.parametrize("season", [1, 3, 5, 11])
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.8])
def test_the_last_season_goes_on(season: int, missing: float) -> None:
    rng = np.random.default_rng(season)
    steps = rng.normal(size=(11, 3)).astype(np.float32)
    steps[rng.random(steps.shape) < missing] = np.nan
    steps[:, 2] = np.nan if missing else steps[:, 2]
    assert np.allclose(repeated(steps, season, 13), by_hand(steps, season, 13))


def test_the_last_value_is_a_season_of_one() -> None:
    steps = np.array([[1.0, 5.0], [2.0, np.nan]])
    assert repeated(steps, 1, 3)[..., 0].tolist() == [[2, 2, 2], [5, 5, 5]]
