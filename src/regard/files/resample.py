"""Change of the sampling rate: band-limited interpolation, block by block or all at once.

Every output sample is a sum over inputs nearby, weighted by a sinc that cuts off below both Nyquist rates, in
a Kaiser window. With rates in the ratio L : M the weights repeat after L outputs.
"""

from math import ceil, gcd

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
ZEROS = 24
"""Zero crossings of the sinc on either side."""
BETA, ROLL_OFF = 9.0, 0.945
"""Shape of the window; share of the lower Nyquist rate that passes."""


class Resampler:
    """Keeps what the next block needs, so that blocks of any size give the same samples as all at once."""

    def __init__(self, rate_in: int, rate_out: int) -> None:
        common = gcd(rate_in, rate_out)
        self.up, self.down = rate_out // common, rate_in // common
        self.is_same = self.up == self.down
        cutoff = ROLL_OFF * min(1.0, self.up / self.down)
        self.half = ceil(ZEROS / cutoff)
        ahead_J = np.arange(-self.half + 1, self.half + 1)
        phase_P1 = (np.arange(self.up) / self.up)[:, None]
        apart_PJ = ahead_J - phase_P1
        window_PJ = np.i0(BETA * np.sqrt((1 - (apart_PJ / self.half) ** 2).clip(0))) / np.i0(BETA)
        weights_PJ = cutoff * np.sinc(cutoff * apart_PJ) * window_PJ
        self.weights_PJ = (weights_PJ / weights_PJ.sum(1, keepdims=True)).astype(np.float32)
        self._held = np.zeros(self.half - 1, np.float32)
        """Inputs from `_first` on that outputs to come may need."""
        self._first, self._n_in, self._n_out = 1 - self.half, 0, 0

    def push(self, samples: Samples) -> Samples:
        """The outputs whose inputs are all known."""
        if self.is_same:
            return samples
        self._n_in += len(samples)
        return self._made(samples, max(0, -(-(self._n_in - self.half) * self.up // self.down)))

    def finish(self) -> Samples:
        """The outputs that are left; behind the end there is silence."""
        if self.is_same:
            return np.zeros(0, np.float32)
        n_out = -(-self._n_in * self.up // self.down)
        return self._made(np.zeros(2 * self.half, np.float32), n_out)

    def _made(self, samples: Samples, n_out: int) -> Samples:
        held = np.concatenate([self._held, samples])
        made = np.empty(max(0, n_out - self._n_out), np.float32)
        for offset in range(min(self.up, len(made))):
            place = (self._n_out + offset) * self.down
            begin = place // self.up - self.half + 1 - self._first
            n = len(range(offset, len(made), self.up))
            windows = np.lib.stride_tricks.sliding_window_view(held[begin:], 2 * self.half)[:: self.down]
            made[offset :: self.up] = windows[:n] @ self.weights_PJ[place % self.up]
        self._n_out += len(made)
        gone = max(0, self._n_out * self.down // self.up - self.half + 1 - self._first)
        self._held, self._first = held[gone:], self._first + gone
        return made


def resampled(samples: Samples, rate_in: int, rate_out: int) -> Samples:
    resampler = Resampler(rate_in, rate_out)
    return samples if resampler.is_same else np.concatenate([resampler.push(samples), resampler.finish()])
