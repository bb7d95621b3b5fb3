"""Damaged and odd recordings: an answer, or one sentence of DataError, whatever the bytes are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import regard
from hearers import make_hearer
from regard.errors import DataError
from regard.files.sound import Sound
from sounds import RATE, spoken, wav

FORMATS: dict[str, dict[str, Any]] = {
    "wav": {},
    "flac": {"format": "FLAC"},
    "ogg": {"format": "OGG", "subtype": "VORBIS"},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> "regard.Trained":
    return regard.load(make_hearer(tmp_path_factory.mktemp("hearer") / "model", "ctc", decode={"beam": 1}))


def broken(sound: bytes, rng: np.random.Generator, number: int) -> bytes:
    """Bytes changed, cut out, or cut off; every second time near the head."""
    found = bytearray(sound)
    for _ in range(int(rng.integers(1, 10))):
        at = int(rng.integers(0, min(len(found), 120) if number % 2 else len(found)))
        if number % 4 < 2:
            found[at] = int(rng.integers(0, 256))
        elif number % 4 == 2:
            del found[at : at + int(rng.integers(1, 500))]
        else:
            found = found[: max(1, at)]
        found = found or bytearray(b"R")
    return bytes(found)


@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_recordings_are_answered_or_refused(trained: "regard.Trained", kind: str) -> None:
    sound = wav(spoken("amber birch cedar", 1)[0], RATE, **FORMATS[kind])
    rng, refusals = np.random.default_rng(0), []
    for number in range(40):
        try:
            (answer,) = trained.predict([broken(sound, rng, number)])
            assert isinstance(answer.text, str)
        except DataError as refusal:
            refusals.append(str(refusal))
    assert refusals
    assert all("\n" not in one and len(one) < 300 for one in refusals)


def predicted(trained: "regard.Trained", samples: NDArray[Any], rate: int = RATE) -> str:
    (answer,) = trained.predict([wav(samples, rate)])
    return str(answer.text)


def test_odd_recordings_are_heard(trained: "regard.Trained") -> None:
    """Silence, full scale, 64 channels and 192 kHz; and nothing at all, in which nothing is said."""
    samples, _ = spoken("amber birch", 2)
    for odd in (np.zeros(RATE), np.sign(samples), np.repeat(samples[:, None], 64, 1)):
        predicted(trained, odd)
    predicted(trained, np.repeat(samples, 24), 192_000)
    assert predicted(trained, np.zeros(0)) == ""


def test_hours_are_refused_in_an_upload_and_read_block_by_block_in_a_file(
    trained: "regard.Trained", tmp_path: Path
) -> None:
    long = wav(np.zeros(8 * 3600 * 1000, np.int16), 1000, subtype="PCM_U8")
    with pytest.raises(DataError, match=r"lasts 8\.0 hours, more than 1"):
        trained.predict([long])
    path = tmp_path / "long.wav"
    path.write_bytes(long)
    with Sound(path, "long.wav") as sound:
        assert sound.head.seconds == 8 * 3600
        assert max(map(len, sound.blocks())) <= 1 << 18
