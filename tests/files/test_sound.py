"""Files of sound: any rate, any channels, whole or in part; bad ones get one sentence."""

from pathlib import Path

import numpy as np
import pytest

from regard.errors import DataError
from regard.files.resample import Resampler, resampled
from regard.files.sound import MOST_CHANNELS, Sound
from sounds import RATE, noise, wav


@pytest.mark.parametrize("kind", [("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("MP3", None)])
def test_formats_give_the_same_sound(kind: tuple[str, str | None]) -> None:
    at = np.arange(RATE) / RATE
    samples = (0.3 * np.sin(2 * np.pi * 440 * at)).astype(np.float32)
    found = Sound(wav(samples, format=kind[0], subtype=kind[1]), "x")
    assert (found.head.rate, found.head.n_channels) == (RATE, 1)
    heard = found.samples(RATE)
    assert abs(len(heard) - RATE) < RATE // 5
    spectrum = np.abs(np.fft.rfft(heard[:RATE] * np.hanning(min(RATE, len(heard))), RATE))
    assert abs(int(spectrum.argmax()) - 440) <= 1


def test_channels_are_mixed() -> None:
    left, right = noise(0.3, 1), noise(0.3, 2)
    mixed = Sound(wav(np.stack([left, right], 1), subtype="FLOAT"), "x").samples(RATE)
    np.testing.assert_allclose(mixed, (left + right) / 2, atol=1e-6)


def test_a_part_is_what_the_whole_has_there(tmp_path: Path) -> None:
    samples = noise(1.0)
    path = tmp_path / "long.wav"
    path.write_bytes(wav(samples, subtype="FLOAT"))
    part = Sound(path, "x", 0.25, 0.5)
    assert part.head.seconds == pytest.approx(0.25)
    np.testing.assert_array_equal(part.samples(RATE), samples[RATE // 4 : RATE // 2])


@pytest.mark.parametrize("rates", [(48_000, 16_000), (44_100, 16_000), (8_000, 16_000), (11_025, 8_000)])
def test_blocks_of_any_size_are_resampled_alike(rates: tuple[int, int]) -> None:
    samples, rng = noise(0.4, 3, rates[0]), np.random.default_rng(0)
    whole, resampler, parts = resampled(samples, *rates), Resampler(*rates), []
    while len(samples):
        n = int(rng.integers(1, 900))
        parts.append(resampler.push(samples[:n]))
        samples = samples[n:]
    found = np.concatenate([*parts, resampler.finish()])
    assert len(found) == len(whole) == -(-round(0.4 * rates[0]) * rates[1] // rates[0])
    np.testing.assert_allclose(found, whole, atol=2e-6)


def test_a_short_sound_is_resampled() -> None:
    assert len(resampled(np.ones(3, np.float32), 48_000, 16_000)) == 1
    assert len(resampled(np.zeros(0, np.float32), 48_000, 16_000)) == 0


def bad(content: bytes, **part: float) -> str:
    with pytest.raises(DataError, match=r"^x: ") as fault:
        Sound(content, "x", **part).samples(RATE)
    assert "\n" not in str(fault.value)
    return str(fault.value)


def test_what_is_no_sound_is_refused() -> None:
    assert "the file is empty" in bad(b"")
    assert "not a sound of a kind that is read" in bad(b"no sound at all, but some text " * 9)
    assert "not a sound of a kind that is read" in bad(wav(noise(0.1))[:20])
    with pytest.raises(DataError, match=r"^x: nowhere.wav: no such file"):
        Sound(Path("nowhere.wav"), "x")


def test_what_is_too_much_is_refused_before_it_is_decoded() -> None:
    assert "400 samples a second" in bad(wav(noise(0.1), 400))
    assert f"at most {MOST_CHANNELS} are mixed" in bad(wav(np.zeros((10, 300), np.float32)))
    assert "lasts 8.0 hours, more than 1" in bad(
        wav(np.zeros(8 * 3600 * 1000, np.int16), 1000, subtype="PCM_U8")
    )


def test_parts_that_are_none_are_refused() -> None:
    content = wav(noise(0.5))
    assert "ends at 0.1 s, before it begins (0.3 s)" in bad(content, start=0.3, end=0.1)
    assert "begins at 9 s, where the recording has ended" in bad(content, start=9.0)


def test_samples_that_are_no_numbers_are_refused() -> None:
    samples = noise(0.2)
    samples[100] = np.nan
    assert "holds samples that are no numbers" in bad(wav(samples, subtype="FLOAT"))


def refusal(content: bytes) -> str | None:
    try:
        Sound(content, "x").samples(RATE)
    except DataError as fault:
        return str(fault)
    return None


def test_damaged_files_get_a_sentence() -> None:
    """Whatever is done to a file: it is read, or refused in one sentence."""
    rng = np.random.default_rng(0)
    for kind in (("WAV", None), ("FLAC", None), ("OGG", "VORBIS"), ("MP3", None)):
        content = bytearray(wav(noise(0.3), format=kind[0], subtype=kind[1]))
        for _ in range(25):
            broken = bytearray(content)
            for place in rng.integers(0, len(broken), 8):
                broken[place] = int(rng.integers(256))
            fault = refusal(bytes(broken[: int(rng.integers(1, len(broken)))]))
            assert fault is None or (fault.startswith("x: ") and "\n" not in fault)
