"""`regard predict` with recordings: forms, folders, and sound that comes in on standard input."""

import json
from pathlib import Path

import numpy as np
import pytest

import regard
from hearers import make_hearer
from regard.api.listen import mono
from regard.errors import DataError, RecipeError
from small_runs import Call
from sounds import RATE, spoken, wav


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_hearer(tmp_path_factory.mktemp("hearer") / "model")


@pytest.fixture
def recordings(home: Path) -> list[Path]:
    (home / "talks" / "inner").mkdir(parents=True)
    for number, name in enumerate(("one", "inner/two", "three")):
        samples, _ = spoken("amber birch cedar delta", number)
        (home / "talks" / f"{name}.wav").write_bytes(wav(samples))
    (home / "talks" / "notes.txt").write_text("no sound")
    return [home / "talks" / f"{name}.wav" for name in ("inner/two", "one", "three")]


def test_a_folder_stands_for_its_recordings(call: Call, run: Path, recordings: list[Path]) -> None:
    expected = regard.load(run).predict(recordings)
    result = call("predict", run, "talks")
    assert result.stdout == "".join(f"{answer.text}\n" for answer in expected), result.stderr
    assert call("predict", run, *recordings).stdout == result.stdout
    assert any(answer.text for answer in expected)


def test_a_folder_without_recordings_is_refused(call: Call, run: Path, home: Path) -> None:
    (home / "empty").mkdir()
    result = call("predict", run, "empty")
    assert result.exit_code == 2
    assert "empty/: holds no files of this kind" in result.stderr


@pytest.mark.parametrize("form", ["srt", "vtt", "ctm"])
def test_each_form_is_that_of_the_answer(call: Call, run: Path, recordings: list[Path], form: str) -> None:
    (answer,) = regard.load(run).predict(recordings[1:2])
    result = call("predict", run, recordings[1], "--format", form)
    assert result.stdout.splitlines() == answer.as_form(form, "one", 1).splitlines()
    assert {"srt": " --> ", "vtt": "WEBVTT", "ctm": "one 1 "}[form] in result.stdout


def test_json_is_a_form_as_well(call: Call, run: Path, recordings: list[Path]) -> None:
    assert (
        call("predict", run, recordings[0], "--format", "json").stdout
        == call("predict", run, recordings[0], "--json").stdout
    )


def test_subtitles_of_a_folder_go_into_a_folder(
    call: Call, run: Path, recordings: list[Path], home: Path
) -> None:
    result = call("predict", run, "talks", "--format", "srt", "--out", "subtitles")
    assert "wrote subtitles: 3 files" in result.stdout
    assert sorted(path.name for path in (home / "subtitles").iterdir()) == ["one.srt", "three.srt", "two.srt"]
    alone = call("predict", run, recordings[1], "--format", "srt").stdout
    assert (home / "subtitles" / "one.srt").read_text() == alone


def test_subtitles_of_several_need_a_folder(call: Call, run: Path, recordings: list[Path]) -> None:
    result = call("predict", run, "talks", "--format", "vtt")
    assert result.exit_code == 2
    assert "give --out FOLDER for several" in result.stderr


def test_an_unknown_form_is_refused(call: Call, run: Path, translator: Path, recordings: list[Path]) -> None:
    result = call("predict", run, recordings[0], "--format", "xml")
    assert result.exit_code == 2
    assert (
        "--format xml: a transcriber answers as text, json, srt, vtt, ctm; give one of them" in result.stderr
    )
    result = call("predict", translator, "一", "--format", "srt")
    assert result.exit_code == 2
    assert "answers as text, json; give one of them" in result.stderr


def raw(text: str, seed: int = 0) -> bytes:
    samples, _ = spoken(text, seed)
    return (samples * 32767).astype("<i2").tobytes()


def test_sound_on_standard_input_is_heard(call: Call, run: Path) -> None:
    sound = raw("amber birch cedar delta amber", 7)
    *_, last = (parts := list(regard.load(run).listen([sound], rate=RATE)))
    text = "".join(part.text for part in parts)
    assert last.is_last
    assert call("predict", run, "-", "--rate", RATE, input=sound).stdout == f"{text}\n"
    lines = call("predict", run, "-", "--rate", RATE, "--format", "json", input=sound).stdout.splitlines()
    assert [json.loads(line) for line in lines] == [part.model_dump(mode="json") for part in parts]
    ctm = call("predict", run, "-", "--rate", RATE, "--format", "ctm", input=sound).stdout
    assert [line.split()[4] for line in ctm.splitlines()] == text.split()


def test_a_stream_that_stops_within_a_sample_is_heard(call: Call, run: Path) -> None:
    sound = raw("amber birch", 1)
    odd = call("predict", run, "-", "--rate", RATE, input=sound + b"\x01")
    assert (odd.exit_code, odd.stdout) == (0, call("predict", run, "-", "--rate", RATE, input=sound).stdout)
    assert call("predict", run, "-", "--rate", RATE, input=b"").stdout == "\n"


def test_a_wav_file_on_standard_input_says_what_it_is(call: Call, run: Path) -> None:
    sound = raw("amber birch cedar", 3)
    samples = np.frombuffer(sound, "<i2")
    plain = call("predict", run, "-", "--rate", RATE, input=sound).stdout
    assert call("predict", run, "-", input=wav(samples)).stdout == plain
    assert call("predict", run, "-", input=wav(np.stack([samples, samples], 1))).stdout == plain


@pytest.mark.parametrize(
    ("sound", "message"),
    [
        (b"OggS" + bytes(40), "standard input: begins like an Ogg file; give the file by its name"),
        (wav(np.zeros(9), subtype="FLOAT"), "a WAV file of another kind than 16-bit samples"),
        (wav(np.zeros(9))[:30], "begins like a WAV file, but has no samples"),
        (b"RIFF", "begins like a WAV file, but has no samples"),
    ],
)
def test_other_files_on_standard_input_are_refused(call: Call, run: Path, sound: bytes, message: str) -> None:
    result = call("predict", run, "-", input=sound)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_an_impossible_rate_is_refused(call: Call, run: Path) -> None:
    result = call("predict", run, "-", "--rate", "12", input=b"")
    assert result.exit_code == 2
    assert "rate: 12 samples a second; give 1,000 to 400,000" in result.stderr


def test_blocks_of_any_kind_are_the_same_sound() -> None:
    sound = np.frombuffer(raw("amber"), "<i2")
    as_bytes = np.concatenate([*mono([sound.tobytes()[:33], sound.tobytes()[33:]])])
    floats = sound.astype(np.float32) / 32768
    for other in (sound, floats, np.stack([floats, floats], 1), floats.astype(np.float64)):
        np.testing.assert_allclose(np.concatenate([*mono([other[:7], other[7:]])]), as_bytes, atol=1e-7)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("text", "block 1: str; give bytes of 16-bit samples"),
        (np.zeros(3, np.int64), "block 1: samples of int64; give int16"),
        (np.full(3, np.nan), "block 1: holds samples that are no numbers"),
        (np.zeros((2, 2, 2)), r"block 1: an array of shape \(2, 2, 2\)"),
        (np.zeros((2, 0)), r"block 1: an array of shape \(2, 0\)"),
    ],
)
def test_blocks_that_are_no_sound_are_refused(block: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(mono([block]))  # type: ignore[list-item]


def test_other_models_do_not_listen(translator: Path) -> None:
    with pytest.raises(RecipeError, match="only a model of transcribe hears a stream"):
        list(regard.load(translator).listen([b""]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"fields": {"audio": {"mels": 11, "rate": RATE, "normalise": "utterance"}}},
            "needs whole recordings",
        ),
    ],
)
def test_models_that_need_whole_recordings_do_not_stream(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    run = make_hearer(tmp_path / "model", **settings)
    with pytest.raises(RecipeError, match=message):
        list(regard.load(run).listen([b""]))
