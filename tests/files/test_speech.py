"""Corpora of speech: NeMo's manifests, Kaldi's folders, LJSpeech, labels in names."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.errors import DataError
from regard.fields.audio import Audio
from regard.fields.label import Label
from regard.files.read import read_rows
from regard.files.row import Row
from sounds import RATE, noise, wav

FIELDS: Any = {"audio": Audio(), "label": Label()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "wavs").mkdir()
    for name in ("one", "two"):
        (tmp_path / "wavs" / f"{name}.wav").write_bytes(wav(noise(1.0)))
    return tmp_path


def read(folder: Path, path: str, *roles: str) -> list[Row]:
    return list(read_rows([path], dict.fromkeys(roles), fields=FIELDS, base=folder))


def test_a_manifest_names_files_and_parts_of_files(folder: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"audio_filepath": "wavs/one.wav", "text": "a b", "duration": 1.0},
        {"audio_filepath": "wavs/two.wav", "text": "c", "offset": 0.25, "duration": 0.5},
        {"audio_filepath": "wavs/two.wav", "text": "d", "offset": 0.75, "duration": None},
    ]
    (folder / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    first, second, third = read(folder, "train.jsonl", "audio", "text")
    two = str(folder / "wavs/two.wav")
    assert first.cells == {"audio": str(folder / "wavs/one.wav"), "text": "a b"}
    assert second.cells["audio"] == {"path": two, "start": 0.25, "end": 0.75}
    assert third.cells["audio"] == {"path": two, "start": 0.75}
    audio = Audio().fit([Audio().parse(row.cells["audio"], row.where) for row in (first, second)])
    coded = audio.encode([audio.parse(row.cells["audio"], row.where) for row in (first, second, third)])
    assert [len(one.arrays["samples"]) for one in coded] == [RATE, RATE // 2, RATE // 4]
    np.testing.assert_array_equal(
        coded[1].arrays["samples"], coded[0].arrays["samples"][RATE // 4 : -RATE // 4]
    )


def test_a_part_must_be_in_numbers(folder: Path) -> None:
    (folder / "m.jsonl").write_text('{"audio": "wavs/one.wav", "text": "a", "offset": "x"}\n')
    with pytest.raises(DataError, match=r"m.jsonl:1: the start of the audio is no number of seconds"):
        read(folder, "m.jsonl", "audio", "text")


def test_absolute_paths_that_moved_are_found_beside_the_manifest(folder: Path) -> None:
    (folder / "m.jsonl").write_text('{"audio": "/gone/corpus/wavs/one.wav", "text": "a"}\n')
    with pytest.raises(
        DataError,
        match=r"m.jsonl:1: /gone/corpus/wavs/one.wav: no such file; it lies at wavs/one.wav from here",
    ):
        read(folder, "m.jsonl", "audio", "text")


def test_ljspeech(folder: Path) -> None:
    (folder / "metadata.csv").write_text('one|No. 1, "yes"|number one yes\ntwo|Two.|\n')
    first, second = read(folder, "metadata.csv", "audio", "text")
    assert first.cells == {"audio": str(folder / "wavs/one.wav"), "text": "number one yes"}
    assert (second.cells["text"], second.line) == ("Two.", 2)
    (folder / "metadata.csv").write_text("one|a|a\ntwo\n")
    with pytest.raises(DataError, match=r"metadata.csv:2: needs a name, its transcript"):
        read(folder, "metadata.csv", "audio", "text")


def test_a_metadata_file_with_commas_is_a_table(folder: Path) -> None:
    (folder / "metadata.csv").write_text("file,text\nwavs/one.wav,a|b\n")
    (row,) = read(folder, "metadata.csv", "audio", "text")
    assert row.cells == {"audio": str(folder / "wavs/one.wav"), "text": "a|b"}


def kaldi(folder: Path, **files: str) -> None:
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)


def test_kaldi(folder: Path) -> None:
    kaldi(folder, wav_scp="u1 wavs/one.wav\nu2 wavs/two.wav\n", text="u2 c d\nu1 a\n")
    rows = read(folder.parent, f"{folder.name}/", "audio", "text")
    assert [row.cells["text"] for row in rows] == ["a", "c d"]
    assert rows[1].cells["audio"] == str(folder / "wavs/two.wav")
    assert rows[1].where == f"{folder.name}/wav.scp:2"


def test_kaldi_with_segments(folder: Path) -> None:
    kaldi(folder, wav_scp="r wavs/one.wav\n", text="s1 a\ns2 b\n", segments="s1 r 0.0 0.5\ns2 r 0.5 -1\n")
    first, second = read(folder.parent, f"{folder.name}/", "audio", "text")
    path = str(folder / "wavs/one.wav")
    assert first.cells["audio"] == {"path": path, "start": 0.0, "end": 0.5}
    assert second.cells["audio"] == {"path": path, "start": 0.5}


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"wav_scp": "u1 sox in.sph -t wav - |\n", "text": "u1 a\n"}, "is a command, which is never run"),
        ({"wav_scp": "u1 wavs/one.wav\n", "text": "u2 a\n"}, "utterance u1 has no line"),
        (
            {"wav_scp": "r wavs/one.wav\n", "text": "s a\n", "segments": "s q 0 1\n"},
            "recording q is not in",
        ),
        (
            {"wav_scp": "r wavs/one.wav\n", "text": "s a\n", "segments": "s r 0\n"},
            "needs an utterance, its recording, its start and its end",
        ),
        ({"wav_scp": "r wavs/one.wav\n"}, "holds audio and text, no text"),
    ],
)
def test_kaldi_that_does_not_fit_together_is_refused(
    folder: Path, files: dict[str, str], sentence: str
) -> None:
    kaldi(folder, **files)
    with pytest.raises(DataError, match=sentence):
        read(folder.parent, f"{folder.name}/", "audio", "text")


def test_labels_in_names(tmp_path: Path) -> None:
    (tmp_path / "digits").mkdir()
    for name in ("7_ann_0.wav", "3_ann_1.wav"):
        (tmp_path / "digits" / name).write_bytes(wav(noise(0.2)))
    rows = read(tmp_path, "digits/", "audio", "label")
    assert [row.cells["label"] for row in rows] == ["3", "7"]
    (tmp_path / "digits" / "5").mkdir()
    (tmp_path / "digits" / "5" / "x.wav").write_bytes(wav(noise(0.2)))
    with pytest.raises(DataError, match="some files lie in folders of classes, others beside them"):
        read(tmp_path, "digits/", "audio", "label")
