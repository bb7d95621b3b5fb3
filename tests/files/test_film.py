"""Films: frames are chosen by time, whatever the rate; what cannot be read is one sentence."""

from io import BytesIO
from pathlib import Path

import av
import numpy as np
import pytest

import clips
from clips import COLUMNS, ROWS, film, folder, moving
from regard.errors import DataError
from regard.files import film as films
from regard.files.film import Clip, decoded, measure

SHAPE = (ROWS, COLUMNS, 3)
PLAYLIST = b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.mp4\n#EXT-X-ENDLIST\n"


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Equal but for the losses of a codec."""
    return float(np.abs(one.astype(float) - other.astype(float)).mean()) < 25


def place(frame: np.ndarray) -> int:
    """The column at which the bright square begins."""
    return int(frame[4:10, :, 0].mean(0).argmax())


@pytest.mark.parametrize("suffix", ["mp4", "webm", "avi", "mkv"])
def test_every_frame_is_where_it_was(suffix: str) -> None:
    frames = moving(6, 3)
    found = decoded(film(frames, suffix), "clip", 6, SHAPE)
    assert found.shape == frames.shape
    assert all(alike(*two) for two in zip(found, frames, strict=True))


def test_a_folder_of_pictures_is_a_clip(tmp_path: Path) -> None:
    frames = moving(5)
    assert np.array_equal(decoded(folder(tmp_path / "c", frames), "clip", 5, SHAPE), frames)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="clip: the folder holds no pictures, so it is no clip"):
        measure(tmp_path / "empty", "clip")


def test_frames_are_evenly_spaced_and_repeated_where_there_are_too_few() -> None:
    assert Clip(tuple(range(8)), 4, 4).chosen(4) == [1, 3, 5, 7]
    assert Clip((0, 1, 2), 4, 4).chosen(6) == [0, 0, 1, 1, 2, 2]
    assert Clip((0.0,), 4, 4).chosen(3) == [0, 0, 0]


def test_a_variable_rate_is_chosen_by_time() -> None:
    """Three frames in the first tenths of a second, then one that is shown for long."""
    content = film(moving(4, 4), "mkv", pts=[0, 1, 2, 12])
    clip = measure(content, "clip")
    assert clip.seconds == pytest.approx((0, 0.1, 0.2, 1.2))
    assert clip.chosen(4) == [2, 2, 2, 3]


def test_a_part_of_a_film_is_read_alone() -> None:
    frames = moving(10, 1)
    found = decoded(film(frames), "clip", 4, SHAPE, start=0.3, end=0.7)
    assert all(alike(*two) for two in zip(found, frames[3:7], strict=True))
    with pytest.raises(DataError, match="clip: the clip has no frames from 9 s on"):
        measure(film(frames), "clip", 9, 10)


@pytest.mark.parametrize("content", [b"", b"RIFF nothing", b"\0" * 3000, PLAYLIST])
def test_what_is_no_film_is_one_sentence(content: bytes) -> None:
    with pytest.raises(DataError, match="clip: the clip is damaged, or no film"):
        measure(content, "clip")


def test_damaged_films_are_a_sentence_or_still_pictures() -> None:
    """Bytes changed at random anywhere: frames of the right shape, or one sentence."""
    rng, whole = np.random.default_rng(3), np.frombuffer(film(moving(6)), np.uint8)
    said = []
    for _ in range(60):
        damaged = whole.copy()
        places = rng.integers(len(whole), size=int(rng.integers(1, 40)))
        damaged[places] ^= rng.integers(1, 256, dtype=np.uint8)
        content = damaged[: int(rng.integers(10, len(whole)))] if rng.random() < 0.5 else damaged
        try:
            assert decoded(content.tobytes(), "clip", 4, SHAPE).shape == (4, *SHAPE)
        except DataError as fault:
            said.append(str(fault))
    assert 10 < len(said) <= 60
    assert all(one.startswith("clip: ") and "\n" not in one for one in said)


def test_long_films_and_large_frames_are_refused_before_they_are_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = film(moving(10))
    monkeypatch.setattr(films, "MOST_SECONDS", 0.5)
    with pytest.raises(
        DataError, match=r"the film lasts 1 s; 0.5 s and .* say which part with columns start"
    ):
        measure(content, "clip")
    assert len(measure(content, "clip", 0.2, 0.4).seconds) == 2
    monkeypatch.setattr(films, "MOST_SECONDS", 600.0)
    monkeypatch.setattr(films, "MOST_PIXELS", 100)
    with pytest.raises(DataError, match="frames of 24 × 16 pixels; give a smaller film"):
        measure(content, "clip")


def test_sound_alone_is_no_clip() -> None:
    file = BytesIO()
    with av.open(file, "w", format="matroska") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        stream.layout = "mono"
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
    with pytest.raises(DataError, match="the clip has no frames; is it a recording of sound only"):
        measure(file.getvalue(), "clip")


def test_what_a_model_is_tried_with_is_a_film() -> None:
    assert len(measure(clips.field().sample, "clip").seconds) == 2
