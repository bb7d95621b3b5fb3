"""Seasons: found where there is one, and nowhere else."""

import numpy as np
import pytest

from regard.fields.season import autocorrelation, season, seasonal_error

N = 400


def wave(period: float, noise: float, drift: float = 0.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(N)
    return (np.sin(2 * np.pi * t / period) + drift * t + rng.normal(0, noise, N))[:, None]


@pytest.mark.parametrize("period", [5, 12, 24, 31])
@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_a_wave_has_the_season_of_its_period(period: int, drift: float) -> None:
    assert season([wave(period, 0.3, drift)]) == period


def test_noise_random_walks_and_constants_have_none() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 1, (N, 2))
    for values in (noise, noise.cumsum(0), np.ones((N, 2)), np.full((N, 1), np.nan), np.zeros((2, 1))):
        assert season([values]) == 1
    assert season([]) == 1


def test_many_short_series_and_missing_values() -> None:
    rng = np.random.default_rng(4)
    parts = [np.array(wave(7, 0.2, seed=seed)[:40]) for seed in range(9)]
    for part in parts:
        part[rng.integers(0, len(part), 3)] = np.nan
    assert season(parts) == 7


def test_autocorrelation_is_that_of_its_definition() -> None:
    values = np.random.default_rng(5).normal(0, 1, 97)
    values[[3, 50]] = np.nan
    centred = np.where(np.isfinite(values), values - np.nanmean(values), 0)
    known = np.isfinite(values)

    def slow(lag: int) -> float:
        later, earlier = centred[lag:], centred[: len(centred) - lag]
        pairs = known[lag:] & known[: len(known) - lag]
        return float((later * earlier)[pairs].mean() / (centred[known] ** 2).mean())

    assert np.allclose(autocorrelation(values, 30), [slow(lag) for lag in range(31)])


def test_the_seasonal_error_is_the_mean_of_what_is_known() -> None:
    rng = np.random.default_rng(6)
    parts = [rng.normal(0, 1, (n, 2)) for n in (11, 5, 3)]
    parts[0][4, 1] = np.nan
    expected = [
        np.nanmean(np.concatenate([np.abs(part[3:, c] - part[:-3, c]) for part in parts])) for c in range(2)
    ]
    assert np.allclose(seasonal_error(parts, 3), expected)
    assert seasonal_error([np.ones((9, 2))], 3).tolist() == [1, 1], "nothing is divided by zero"
