"""Log-mel features against Kaldi's own, and the resampler against a sine that is known at any moment."""

import kaldi_native_fbank
import numpy as np
import pytest
from scipy.signal import resample_poly

from regard.fields.mel import AT_ONCE, Mel
from regard.files.resample import resampled


def kaldis(samples: np.ndarray, rate: int, n_bands: int) -> np.ndarray:
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.samp_freq, options.frame_opts.dither, options.mel_opts.num_bins = rate, 0, n_bands
    options.energy_floor = 0
    fbank = kaldi_native_fbank.OnlineFbank(options)
    fbank.accept_waveform(rate, samples.astype(np.float32).tolist())
    fbank.input_finished()
    return np.stack([fbank.get_frame(number) for number in range(fbank.num_frames_ready)])


@pytest.mark.parametrize(("rate", "n_bands"), [(16_000, 80), (8_000, 40), (11_025, 23)])
def test_features_are_kaldis(rate: int, n_bands: int) -> None:
    rng = np.random.default_rng(0)
    samples = np.sin(np.arange(rate) / 7) * 8000 + rng.normal(0, 300, rate)
    ours, theirs = (
        Mel(rate, n_bands).frames(samples.astype(np.int16)),
        kaldis(samples.astype(np.int16), rate, n_bands),
    )
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_many_frames_are_made_in_parts() -> None:
    mel = Mel(2_000, 8)
    samples = np.random.default_rng(1).normal(0, 1000, (AT_ONCE + 9) * mel.hop).astype(np.int16)
    whole = mel.frames(samples)
    tail = mel.frames(samples[AT_ONCE * mel.hop :])
    np.testing.assert_allclose(whole[AT_ONCE:], tail, atol=1e-4)


@pytest.mark.parametrize("rates", [(48_000, 16_000), (44_100, 16_000), (8_000, 16_000), (22_050, 8_000)])
def test_resampling_is_at_least_as_exact_as_scipys(rates: tuple[int, int]) -> None:
    rate_in, rate_out = rates

    def chord(rate: int) -> np.ndarray:
        at = np.arange(rate // 2) / rate
        return sum(np.sin(2 * np.pi * share * min(rates) * at) for share in (0.011, 0.13, 0.4))

    inner = slice(400, -400)
    ours = resampled(chord(rate_in).astype(np.float32), *rates)
    theirs = resample_poly(chord(rate_in), rate_out // np.gcd(*rates), rate_in // np.gcd(*rates))
    right = chord(rate_out)
    ours_apart, theirs_apart = (np.abs(one[: len(right)] - right)[inner].max() for one in (ours, theirs))
    assert ours_apart < 1e-4 < theirs_apart


def test_what_the_new_rate_cannot_hold_is_gone() -> None:
    high = np.sin(2 * np.pi * 5_000 * np.arange(16_000) / 16_000).astype(np.float32)
    assert np.abs(resampled(high, 16_000, 8_000)[100:-100]).max() < 1e-3
