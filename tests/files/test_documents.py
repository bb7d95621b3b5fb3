"""Documents of plain text: where they end, and that their parts together are the text."""

import gzip
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.files import documents as module
from regard.files.documents import By, documents, goes_on
from regard.files.read import read_rows

TEXT = "  First\n\tline\n\nsecond one\n \n\nthird\nof  three "


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("lines", [(1, "  First"), (2, "\tline"), (4, "second one"), (7, "third"), (8, "of  three ")]),
        ("paragraphs", [(1, "  First\n\tline"), (4, "second one"), (7, "third\nof  three ")]),
        ("files", [(1, TEXT)]),
    ],
)
def test_where_a_document_ends(by: By, expected: list[tuple[int, str]]) -> None:
    assert list(documents(TEXT.split("\n"), by)) == expected


@pytest.mark.parametrize("part", [0, 3, 6])
@pytest.mark.parametrize("by", ["paragraphs", "files"])
def test_parts_that_go_on_make_up_the_document(by: By, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [text for _, text in documents(TEXT.split("\n"), by)]
    monkeypatch.setattr(module, "PART", part)
    parts = [text for _, text in documents(TEXT.split("\n"), by)]
    joined = [""]
    for text in parts:
        joined[-1] += text
        if not goes_on(text):
            joined.append("")
    assert joined == [*whole, ""]
    assert len(parts) > len(whole)


@pytest.mark.parametrize("part", [0, 3, 4096])
@pytest.mark.parametrize("end", ["\n", "\n\n", "\n \n\n", " "])
@pytest.mark.parametrize("by", ["lines", "paragraphs", "files"])
def test_blank_lines_at_the_end_of_a_file_leave_no_document_open(
    by: By, end: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PART", part)
    *_, (_, last) = documents((TEXT + end).split("\n"), by)
    assert not goes_on(last)
    assert last.rstrip().endswith("of  three")


def test_a_file_begins_with_its_blank_lines() -> None:
    assert list(documents(["", " ", "one", ""], "files")) == [(1, "\n \none")]
    assert list(documents(["", " "], "files")) == []


def test_files_are_read_as_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\r\n\r\n two\r\n", "utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("三\n".encode()))
    (tmp_path / "c.tsv").write_text("author\tfour\nauthor\t five\n", "utf-8")
    plain = list(read_rows(["*.txt*"], {"text": None}, base=tmp_path, documents="files"))
    assert [(row.cells["text"], row.file) for row in plain] == [("one\n\n two", "a.txt"), ("三", "b.txt.gz")]
    rows = read_rows(["c.tsv"], {"text": 2}, base=tmp_path, documents="files")
    assert [row.cells["text"] for row in rows] == ["four", "five"], "a row of a table is one"


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("", "utf-8")
    with pytest.raises(DataError, match=r"a\.txt: is empty"):
        list(read_rows(["a.txt"], {"text": None}, base=tmp_path, documents="files"))
