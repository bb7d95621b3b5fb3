"""Corpora of speech as people lay them out: Kaldi's data folders, and LJSpeech's metadata.csv.

A folder of Kaldi has `wav.scp` (a recording and its file a line), `text` (an utterance and its transcript)
and perhaps `segments` (an utterance, its recording, and from when to when it lasts). Commands in `wav.scp`,
which end in a pipe, are never run.
"""

import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from regard.errors import DataError
from regard.files.lines import lines

SCP, TEXT, SEGMENTS = "wav.scp", "text", "segments"
LJSPEECH = "metadata.csv"
LJSPEECH_HEADER = ["audio", "text", "unnormalised"]


def is_kaldi(folder: Path) -> bool:
    return (folder / SCP).is_file()


def kaldi(folder: Path, name: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """The file and line of every utterance; its recording, or the part of one; its transcript, if any."""
    recordings = {key: (value, line) for key, value, line in _pairs(folder, name, SCP)}
    has_text = (folder / TEXT).is_file()
    texts = {key: value for key, value, _ in _pairs(folder, name, TEXT)} if has_text else {}
    if not (folder / SEGMENTS).is_file():
        for key, (path, line) in recordings.items():
            yield _utterance(name + SCP, line, key, _path(path, f"{name}{SCP}:{line}"), texts, has_text, name)
        return
    for key, value, line in _pairs(folder, name, SEGMENTS):
        where = f"{name}{SEGMENTS}:{line}"
        recording, *times = value.split()
        if recording not in recordings:
            raise DataError(f"{where}: recording {recording} is not in {name}{SCP}")
        try:
            start, end = map(float, times)
        except ValueError:
            raise DataError(f"{where}: needs an utterance, its recording, its start and its end") from None
        path, at = recordings[recording]
        audio = {"path": _path(path, f"{name}{SCP}:{at}"), "start": start}
        if end >= 0:  # −1: to the end of the recording
            audio["end"] = end
        yield _utterance(name + SEGMENTS, line, key, audio, texts, has_text, name)


def _utterance(
    file: str, line: int, key: str, audio: Any, texts: dict[str, str], has_text: bool, name: str
) -> tuple[str, int, dict[str, Any]]:
    if has_text and key not in texts:
        raise DataError(f"{file}:{line}: utterance {key} has no line in {name}{TEXT}")
    return file, line, {"audio": audio} | ({"text": texts[key]} if has_text else {})


def _pairs(folder: Path, name: str, file: str) -> Iterator[tuple[str, str, int]]:
    """The first word of each line, what follows, and the line's number."""
    for number, line in enumerate(lines(str(folder / file)), 1):
        if line.strip():
            key, _, value = line.strip().partition(" ")
            yield key, value.strip(), number


def _path(path: str, where: str) -> str:
    if path.endswith("|"):
        raise DataError(
            f"{where}: is a command, which is never run; convert the recordings, and name the files"
        )
    return path


def is_ljspeech(file: str, first: str) -> bool:
    """True if a file called metadata.csv is LJSpeech's, by its first line."""
    return (
        Path(file).name.lower() == LJSPEECH and first.count("|") in (1, 2) and "," not in first.split("|")[0]
    )


def ljspeech(file: str, first: str, rest: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """A table with a header: the recording, the transcript as it is spoken, and as it was written."""
    yield 0, LJSPEECH_HEADER
    for number, line in enumerate(chain([first], rest), 1):
        cells = line.split("|")
        if not line.strip():
            continue
        if len(cells) not in (2, 3) or not cells[0].strip():
            raise DataError(
                f"{file}:{number}: needs a name, its transcript and its normalised transcript, as in a|b|c"
            )
        yield (
            number,
            [f"wavs/{cells[0].strip()}.wav", cells[-1].strip() or cells[1].strip(), cells[1].strip()],
        )


def part_of(cell: Any, record: Any) -> Any:
    """The part of a recording that NeMo's manifests mean by `offset` and `duration`; else the cell itself."""
    if not isinstance(cell, str) or not isinstance(record, dict) or "offset" not in record:
        return cell
    part = {"path": cell, "start": record["offset"]}
    if record.get("duration") is not None:
        part["duration"] = record["duration"]
    return part


def times(cell: Any, where: str, name: str) -> dict[str, float]:
    """Begin and end of a part of a recording, in seconds."""
    bounds: dict[str, float] = {}
    for key in ("start", "end", "duration"):
        if key in cell:
            try:
                bounds[key] = float(cell[key])
            except (TypeError, ValueError):
                raise DataError(f"{where}: the {key} of the {name} is no number of seconds") from None
            if not 0 <= bounds[key] < math.inf:
                raise DataError(f"{where}: the {key} of the {name} is {bounds[key]:g} s")
    if "duration" in bounds:
        bounds["end"] = bounds.get("start", 0.0) + bounds.pop("duration")
    return bounds
