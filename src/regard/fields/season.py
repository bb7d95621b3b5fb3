"""The season of a series: the number of steps after which it is most like itself.

A forecast that repeats the last season is as wrong as values so many steps apart differ. For every peak of
the autocorrelation that mean squared difference is taken over all horizons; the season is the one for which
it is smallest, if that is clearly less than for the last value, which is the season of 1.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

LONGEST = 10_000
"""Steps of a season at most."""
ROUNDS = 3
"""Times that a season must have been seen."""
GAIN, BY_CHANCE = 0.05, 4.0
"""Share by which a season must be better than none: this, and so many deviations of noise's correlation."""
MOST_PEAKS = 200
AS_GOOD = 0.2
"""Share of the best season's gain that a shorter one may miss to be taken for it."""
HORIZONS = 400
"""Steps ahead over which forecasts are compared, at most."""


def season(series: Sequence[Floats]) -> int:
    """The season of series (steps × channels, NaN where a value is missing); 1 where there is none."""
    longest = min(LONGEST, max((len(values) for values in series), default=0) // ROUNDS)
    if longest < 2:
        return 1
    total_L, weight_L = np.zeros(longest + 1), np.zeros(longest + 1)
    for values_TC in series:
        most = min(longest, len(values_TC) // ROUNDS)
        if most < 2:
            continue
        for values_T in np.asarray(values_TC, np.float64).T:
            correlation_L = autocorrelation(_level(values_T), most)
            if correlation_L[0]:
                total_L[: most + 1] += len(values_T) * correlation_L
                weight_L[: most + 1] += len(values_T)
    if not weight_L[0]:
        return 1
    seen = weight_L > 0
    gain = max(GAIN, BY_CHANCE / np.sqrt(weight_L[0]))
    return _best(1 - total_L[seen] / weight_L[seen], gain)


def autocorrelation(values_T: Floats, most: int) -> Floats:
    """The correlation of a series with itself, up to `most` steps later, over the pairs that are known.

    Zeros for a constant.
    """
    known_T = np.isfinite(values_T)
    centred_T = np.where(known_T, values_T - (values_T[known_T].mean() if known_T.any() else 0.0), 0.0)
    variance = (centred_T**2).sum() / max(1, known_T.sum())
    if variance <= 1e-12 * np.max(np.abs(values_T[known_T]), initial=1e-150) ** 2:
        return np.zeros(most + 1)
    pairs_L = np.maximum(_products(known_T.astype(np.float64), most).round(), 1)
    return np.asarray(_products(centred_T, most) / pairs_L / variance, np.float64)


def _products(values_T: Floats, most: int) -> Floats:
    """Sums of products with what is 0, 1, 2 … steps later."""
    size = 2 ** int(np.ceil(np.log2(2 * len(values_T))))
    power = np.abs(np.fft.rfft(values_T, size)) ** 2
    return np.asarray(np.fft.irfft(power, size)[: most + 1], np.float64)


def _level(values_T: Floats) -> Floats:
    """The series without its straight line."""
    known_T = np.isfinite(values_T)
    if known_T.sum() < 3:
        return values_T
    every_T = np.arange(len(values_T))
    slope, start = np.polyfit(every_T[known_T], values_T[known_T], 1)
    return np.asarray(values_T - (slope * every_T + start), np.float64)


def _best(apart_L: Floats, gain: float) -> int:
    """The shortest lag about as good as the best one, by the differences at all lags."""
    last = len(apart_L) - 1
    horizons = np.arange(1, min(last, HORIZONS) + 1)
    inner = apart_L[1:-1]
    lags = np.flatnonzero((inner <= apart_L[:-2]) & (inner < apart_L[2:])) + 1
    lags = lags[lags > 1]
    lags = np.sort(lags[np.argsort(apart_L[lags], kind="stable")[:MOST_PEAKS]])
    if not len(lags):
        return 1
    repeated = [lag * -(-horizons // lag) for lag in lags.tolist()]
    errors = np.array([apart_L[lag[lag <= last]].mean() for lag in repeated])
    best, none = errors.min(), apart_L[horizons].mean()
    if best > (1 - gain) * none:
        return 1
    return int(lags[np.flatnonzero(errors <= best + AS_GOOD * (none - best))[0]])


def seasonal_error(series: Sequence[Floats], steps: int) -> Floats:
    """The mean absolute error, by channel, of taking the value one season ago: what MASE divides by.

    1 for a channel that is constant or never seen twice.
    """
    n_channels = series[0].shape[1] if series else 0
    sums_C, counts_C = np.zeros(n_channels), np.zeros(n_channels)
    for values_TC in series:
        apart_TC = np.abs(np.asarray(values_TC[steps:], np.float64) - values_TC[:-steps])
        sums_C += np.nansum(apart_TC, 0)
        counts_C += np.isfinite(apart_TC).sum(0)
    return np.where(sums_C > 0, sums_C / np.maximum(counts_C, 1), 1.0)
