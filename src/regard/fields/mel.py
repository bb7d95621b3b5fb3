"""Log-mel features, as Kaldi makes them: the energy in bands that are spaced as the ear hears, every 10 ms.

A frame of 25 ms loses its mean, is pre-emphasised, windowed, transformed, and its power summed under
triangles on the mel scale. There is no dither, so the same sound gives the same numbers.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from regard.files.sound import LOUDEST

Floats = NDArray[np.float32]
WINDOW, HOP = 0.025, 0.010
"""Seconds of a frame, and from one to the next."""
PREEMPHASIS = 0.97
LOWEST = 20.0
"""The frequency at which the lowest band begins; the highest ends at half of the rate."""
AT_ONCE = 4096
"""Frames that are transformed at once."""
FLOOR = np.finfo(np.float32).eps


@dataclass(frozen=True)
class Mel:
    rate: int
    n_bands: int

    @property
    def window(self) -> int:
        """Samples of a frame."""
        return int(self.rate * WINDOW)

    @property
    def hop(self) -> int:
        return int(self.rate * HOP)

    def n_frames(self, n_samples: int) -> int:
        return max(0, 1 + (n_samples - self.window) // self.hop)

    def frames(self, samples: NDArray[np.int16] | Floats) -> Floats:
        """frames_TM of samples as 16 bits hold them: only windows that are full."""
        n_frames = self.n_frames(len(samples))
        found_TM = np.empty((n_frames, self.n_bands), np.float32)
        for begin in range(0, n_frames, AT_ONCE):
            end = min(begin + AT_ONCE, n_frames)
            part = samples[begin * self.hop : (end - 1) * self.hop + self.window].astype(np.float32)
            found_TM[begin:end] = self._frames(part)
        return found_TM

    def _frames(self, samples: Floats) -> Floats:
        frames_TW = np.lib.stride_tricks.sliding_window_view(samples, self.window)[:: self.hop]
        frames_TW = frames_TW - frames_TW.mean(1, keepdims=True, dtype=np.float32)
        before_TW = np.concatenate([frames_TW[:, :1], frames_TW[:, :-1]], 1)
        frames_TW = (frames_TW - np.float32(PREEMPHASIS) * before_TW) * self.weights
        spectrum_TF = np.fft.rfft(frames_TW, self.n_fft)[:, :-1]
        power_TF = (spectrum_TF.real**2 + spectrum_TF.imag**2).astype(np.float32)
        logs_TM: Floats = np.log(np.maximum(power_TF @ self.bands, FLOOR))
        return logs_TM

    @property
    def n_fft(self) -> int:
        return 1 << (self.window - 1).bit_length()

    @cached_property
    def weights(self) -> Floats:
        """Kaldi's: a Hann window to the power 0.85, which does not end in zeros."""
        at = np.arange(self.window)
        hann = (0.5 - 0.5 * np.cos(2 * np.pi * at / (self.window - 1))) ** 0.85
        window_W: Floats = hann.astype(np.float32)
        return window_W

    @cached_property
    def bands(self) -> Floats:
        """The triangle of each band over the bins of the spectrum, all but the last."""
        low, high = mel(np.array(LOWEST)), mel(np.array(self.rate / 2))
        corners = low + (high - low) * np.arange(self.n_bands + 2) / (self.n_bands + 1)
        left_M, middle_M, right_M = corners[:-2], corners[1:-1], corners[2:]
        bin_F1 = mel(np.arange(self.n_fft // 2) * self.rate / self.n_fft)[:, None]
        rising_FM, falling_FM = (
            (bin_F1 - left_M) / (middle_M - left_M),
            (right_M - bin_F1) / (right_M - middle_M),
        )
        return np.minimum(rising_FM, falling_FM).clip(0).astype(np.float32)


def mel(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
    scale: NDArray[np.float64] = 1127.0 * np.log1p(hertz / 700.0)
    return scale


def as_16_bits(samples: Floats) -> NDArray[np.int16]:
    """Samples from −1 to 1; what is louder is clipped."""
    whole: NDArray[np.int16] = (samples * LOUDEST).round().clip(-LOUDEST - 1, LOUDEST).astype(np.int16)
    return whole
