"""Recordings as a field: fitted, drawn anew, left out in part, examined."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.errors import CheckpointError, DataError
from regard.fields.audio import Audio, AudioSettings, Source
from regard.fields.axis import Axis
from regard.files.row import Row
from sounds import RATE, field, noise, wav

LOUD = {"speed": 0.1, "level": 6.0, "noise": 5.0, "time_masks": 2, "mel_masks": 2}


def coded(audio: Audio, *contents: bytes) -> list[dict[str, Any]]:
    return [dict(one.arrays) for one in audio.encode([Source(content, "x") for content in contents])]


def test_the_commonest_rate_is_taken_but_no_more_than_speech_needs() -> None:
    contents = [wav(noise(0.3, rate=48_000), 48_000)] * 2 + [wav(noise(0.3))]
    fitted = Audio().fit([Source(content, "x") for content in contents])
    assert (fitted.rate, fitted.width["mels"]) == (16_000, 80)
    assert Audio().fit([Source(wav(noise(0.3)), "x")]).rate == RATE


def test_statistics_make_features_normal() -> None:
    audio = field()
    frames_TM = np.concatenate(
        [audio.frames(one) for one in coded(audio, *(wav(noise(0.5, n)) for n in range(3)))]
    )
    np.testing.assert_allclose(frames_TM.mean(0), audio.mean, atol=1e-3)
    np.testing.assert_allclose(frames_TM.std(0), audio.deviation, atol=1e-2)


def test_each_recording_by_itself() -> None:
    audio = field(normalise="utterance")
    (one,) = coded(audio, wav(5 * noise(0.5)))
    frames_TM = audio.frames(one)
    np.testing.assert_allclose(frames_TM.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(frames_TM.std(0), 1, atol=1e-2)


def test_a_long_recording_is_cut_and_says_so() -> None:
    audio = field(seconds=0.5)
    (one,) = audio.encode([Source(wav(noise(2.0)), "x")])
    assert (len(one.arrays["samples"]), one.notes["cut"], one.notes["seconds"]) == (RATE // 2, True, 2.0)
    assert audio.size(one.arrays) <= audio.most


def test_nothing_is_heard_in_a_moment() -> None:
    audio = field()
    moment, second = coded(audio, wav(noise(0.05)), wav(noise(0.2)))
    assert (audio.is_empty(moment), audio.is_empty(second)) == (True, False)
    assert audio.is_empty(coded(audio, wav(np.zeros(0, np.float32)))[0])


def test_files_of_features_are_taken_as_they_are(tmp_path: Path) -> None:
    frames_TM = np.random.default_rng(0).normal(5, 2, (40, 13)).astype(np.float32)
    np.save(tmp_path / "a.npy", frames_TM)
    np.save(tmp_path / "b.npy", frames_TM[:, :5])
    cells = [Audio().clean(name, "x:1", "audio", tmp_path) for name in ("a.npy", "b.npy")]
    audio = Audio().fit([Source(cells[0], "x:1")])
    assert (audio.width["mels"], audio.rate) == (13, 0)
    (one,) = audio.encode([Source(cells[0], "x:1")])
    np.testing.assert_array_equal(one.arrays["frames"], frames_TM)
    with pytest.raises(DataError, match=r"x:2: features of 5 bands; the model reads 13"):
        audio.encode([Source(cells[1], "x:2")])


def test_drawn_sounds_are_no_larger_than_was_said_and_other_ones_in_every_epoch() -> None:
    audio = field(**LOUD)
    (one,) = coded(audio, wav(noise(1.0)))
    lengths, frames = set(), []
    for seed in range(20):
        drawn = audio.draw(one, np.random.default_rng(seed))
        again = audio.draw(one, np.random.default_rng(seed))
        np.testing.assert_array_equal(drawn["frames"], again["frames"])
        assert -(-len(drawn["frames"]) // 4) <= audio.size(one)
        lengths.add(len(drawn["frames"]))
        frames.append(drawn["frames"].sum())
    assert len(lengths) == 3  # slower, as it is, faster
    assert len(set(frames)) == 20


def test_what_is_hidden_is_the_mean() -> None:
    audio = field(time_masks=1, time_mask=10)
    (one,) = coded(audio, wav(noise(1.0)))
    plain = audio.frames(one)
    hidden = [audio.draw(one, np.random.default_rng(seed))["frames"] for seed in range(9)]
    for frames_TM in hidden:
        changed_T = (frames_TM != plain).any(1)
        assert changed_T.sum() <= 10
        np.testing.assert_array_equal(
            frames_TM[changed_T], np.tile(np.float32(audio.mean), (changed_T.sum(), 1))
        )
    assert any((frames_TM != plain).any() for frames_TM in hidden)


def test_what_is_left_out_is_silenced() -> None:
    audio = field()
    quiet = np.concatenate([0.001 * noise(0.3), noise(0.5)])
    batch = audio.collate(coded(audio, wav(quiet)))
    axis = Axis("audio", ("a", "b", "c"), spans=((0, 20), (20, 40), (40, 60)))
    left = audio.without(batch, axis, [1, 2], "blank")
    assert left["frames"].shape[0] == 2
    for row_TM, (begin, end) in zip(left["frames"], axis.spans[1:], strict=True):
        changed_T = (row_TM != batch["frames"][0]).any(1)
        assert set(np.flatnonzero(changed_T)) <= set(range(begin, end))
        assert row_TM[end - 1].mean() < batch["frames"][0, end - 1].mean() - 2


def test_a_recipe_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(wav(noise(2.0)))
    found = Audio.suggest([str(tmp_path / "a.wav")])
    assert found.settings["rate"] == RATE
    assert found.size == 50
    assert "2.0" in found.reasons["seconds"]
    AudioSettings.model_validate(found.settings)


def test_a_damaged_field_is_refused(tmp_path: Path) -> None:
    audio = field()
    audio.save(tmp_path)
    saved = json.loads((tmp_path / "audio.json").read_text())
    for wrong in ({}, saved | {"mean": [1.0]}, saved | {"deviation": [0.0] * 24}):
        (tmp_path / "audio.json").write_text(json.dumps(wrong))
        with pytest.raises(CheckpointError, match=r"audio.json"):
            Audio().load(tmp_path)


def findings(**contents: bytes) -> dict[str, str]:
    rows = [Row({"audio": content}, name, 1) for name, content in contents.items()]
    return {
        one.kind: one.message for one in field(seconds=3.0).check("audio", {"train": rows, "test": rows[:1]})
    }


def test_what_is_wrong_with_recordings_is_found() -> None:
    good, clipped = noise(0.5), (50 * noise(0.5, 2)).clip(-1, 1)
    found = findings(
        good=wav(good),
        again=wav(good),
        silent=wav(np.zeros(RATE, np.float32)),
        clipped=wav(clipped),
        short=wav(noise(0.05, 3)),
        long=wav(noise(4.0, 4)),
        broken=b"RIFF and nothing more",
    )
    assert found["unreadable"].startswith(
        "train: 1 recording that cannot be read; the first: broken:1: not a sound"
    )
    assert found["silent"] == "train: 1 recording in which nothing is heard"
    assert found["clipped"] == "train: 1 recording clipped: recorded too loud"
    assert found["short"] == "train: 1 recording shorter than 0.1 s"
    assert found["long"] == "train: 1 recording longer than 3 s (fields.audio.seconds)"
    assert found["duplicates"] == "train: 1 recording the same as an earlier one"
    assert found["shared"].startswith("test: 1 recording (100.0%) the same as one of train")
    assert found["hours"] == "test: 1 recording, 0.0 minutes"


def test_another_rate_of_the_test_data_is_said() -> None:
    train = [Row({"audio": wav(noise(0.3))}, "a", 1)]
    test = [Row({"audio": wav(noise(0.3, rate=16_000), 16_000)}, "b", 1)]
    found = field().check("audio", {"train": train, "test": test})
    assert "test: recorded at 16,000 samples a second, train at 8,000" in [one.message for one in found]


def test_a_string_from_far_away_is_no_path() -> None:
    with pytest.raises(DataError, match=r"must be a file \(its bytes, or a pathlib.Path\), not a string"):
        Audio().clean("/etc/passwd", "input 1", "the audio")
    with pytest.raises(DataError, match="is an object; it must be the path of a file"):
        Audio().clean({"path": "/etc/passwd"}, "input 1", "the audio")
