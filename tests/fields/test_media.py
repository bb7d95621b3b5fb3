"""Cells that are files: where they come from, and what is refused."""

import os
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
from pydantic import TypeAdapter, ValidationError

from regard.errors import DataError
from regard.fields.field import Coded, FieldSettings, Width
from regard.fields.media import Media
from regard.serve.limits import Limits


@dataclass(frozen=True)
class Noise(Media):
    kind: ClassVar[str] = "noise"
    settings: ClassVar[type[FieldSettings]] = FieldSettings
    reads: ClassVar[str] = "frames"
    suffixes: ClassVar[frozenset[str]] = frozenset({".raw"})
    most_bytes: ClassVar[int] = 7
    sample: str = ""
    optional: bool = False
    width: Width = None  # type: ignore[assignment]

    @classmethod
    def of(cls, settings: Any) -> Self:
        return cls()

    def fit(self, values: Iterable[Any]) -> Self:
        return self

    def parse(self, cell: str | bytes, where: str) -> bytes:
        return self.content(cell, where)

    def encode(self, values: Sequence[Any]) -> list[Coded]:
        return []

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> Self:
        return self


FIELD = Noise()


def test_a_column_of_paths_is_known_by_their_suffix() -> None:
    assert Noise.resembles(["a/1.raw", "b\\2.RAW", "3.wav", "line\n.raw"]) == 0.5
    assert Noise.resembles([]) == Noise.resembles([["x.raw"], {"a": 1}, None]) == 0


def test_paths_start_from_the_folder_of_their_file(tmp_path: Path) -> None:
    (tmp_path / "a.raw").write_bytes(b"1234567")
    cell = FIELD.clean("a.raw", "data.csv:1", "noise", tmp_path)
    assert cell == str(tmp_path / "a.raw")
    assert FIELD.parse(cell, "data.csv:1") == b"1234567"
    typed = FIELD.clean(FIELD.typed(str(tmp_path / "a.raw"), "noise"), "input 1", "noise")
    assert FIELD.parse(typed, "input 1") == b"1234567"


def test_bytes_are_what_a_file_holds_and_a_string_from_far_away_is_no_path() -> None:
    received = FIELD.receive(b"\x00\xff", "noise")
    assert FIELD.parse(FIELD.clean(received, "input 1", "noise"), "input 1") == b"\x00\xff"
    with pytest.raises(DataError, match=r"input 1: noise must be a file .*, not a string"):
        FIELD.clean("/etc/passwd", "input 1", "noise")


@pytest.mark.parametrize("cell", [None, 1, ["a"], {"a": 1}, True])
def test_what_is_no_path_is_refused(cell: object) -> None:
    with pytest.raises(DataError, match=r"data.csv:1: noise is .*; it must be the path of a file"):
        FIELD.clean(cell, "data.csv:1", "noise", Path())


@pytest.mark.parametrize("cell", ["", "a\0.raw"])
def test_no_path_is_empty(cell: str) -> None:
    with pytest.raises(DataError, match="the path of the noise is empty"):
        FIELD.clean(cell, "data.csv:1", "noise", Path())


def test_a_file_is_bounded_and_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "long.raw").write_bytes(b"12345678")
    with pytest.raises(DataError, match=r"long.raw: has more than 7 bytes; give a smaller file"):
        FIELD.parse(str(tmp_path / "long.raw"), "data.csv:1")
    with pytest.raises(DataError, match="input 1: has more than 7 bytes"):
        FIELD.parse(b"12345678", "input 1")
    with pytest.raises(DataError, match=r"lung.raw: no such file; did you mean long.raw\?"):
        FIELD.parse(str(tmp_path / "lung.raw"), "data.csv:1")
    os.mkfifo(tmp_path / "pipe.raw")  # opening it would wait for a writer
    with pytest.raises(DataError, match=r"data.csv:1: .*pipe.raw: is a special file"):
        FIELD.parse(str(tmp_path / "pipe.raw"), "data.csv:1")


def test_requests_hold_a_bounded_file_in_base64() -> None:
    value: TypeAdapter[bytes] = TypeAdapter(FIELD.request(Limits(file_bytes=5)))
    assert value.validate_python(b64encode(b"\x00\xff").decode()) == b"\x00\xff"
    for text, message in {
        b64encode(b"1234567").decode(): "more than 5 bytes",
        "no b64!": "is not base64",
        "abc": "is not base64",
    }.items():
        with pytest.raises(ValidationError, match=message):
            value.validate_python(text)
    with pytest.raises(ValidationError, match="should be a file in base64"):
        value.validate_python(7)
    assert value.json_schema() == {"type": "string", "contentEncoding": "base64", "maxLength": 8}
