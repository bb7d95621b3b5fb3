"""Sentences with two marked entities, and the files of SemEval-2010 task 8 that hold them."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import DataError
from regard.files.read import read_rows
from regard.text.entity_marks import Marked, has_marks, mark, read_marked
from regard.text.unicode import is_blank

SENTENCE = "The <e1>author</e1> uses a <e2>disassembler</e2>."


def test_marks_leave_the_text_and_become_places() -> None:
    text, first, second = read_marked(SENTENCE, "x:1")
    assert text == "The author uses a disassembler."
    assert (text[slice(*first)], text[slice(*second)]) == ("author", "disassembler")


def test_white_space_inside_marks_is_nobodys() -> None:
    assert read_marked("an <e1> arrayed </e1> set of <e2>\telements </e2>.", "x:1") == Marked(
        "an arrayed set of elements.", (3, 10), (18, 26)
    )


def test_either_entity_may_come_first() -> None:
    assert read_marked("<e2>a</e2> <e1>b</e1>", "x:1") == Marked("a b", (2, 3), (0, 1))


@given(st.text(), st.text(min_size=1), st.text(), st.text(min_size=1), st.text(), st.booleans())
def test_what_was_marked_is_read_back(
    before: str, one: str, between: str, other: str, after: str, turned: bool
) -> None:
    text = before + one + between + other + after
    start = len(before + one + between)
    places = [(len(before), len(before + one)), (start, start + len(other))]
    first, second = places[::-1] if turned else places
    if has_marks(text) or any(entity != entity.strip() or is_blank(entity) for entity in (one, other)):
        return
    assert read_marked(mark(text, first, second), "x:1") == Marked(text, first, second)


WRONG = {
    "none": ("plain words", "<e1> is missing"),
    "one": ("<e1>a</e1> b", "<e2> is missing"),
    "open": ("<e1>a</e1> <e2>b", "</e2> is missing"),
    "twice": ("<e1>a</e1> <e1>b</e1> <e2>c</e2>", "<e1> occurs 2 times"),
    "nested": ("<e1>a <e2>b</e2></e1>", "the marks are in the order <e1> <e2> </e2> </e1>"),
    "crossed": ("<e1>a <e2>b</e1> c</e2>", "the marks are in the order <e1> <e2> </e1> </e2>"),
    "turned": ("</e1>a<e1> <e2>b</e2>", "the marks are in the order </e1> <e1> <e2> </e2>"),
    "empty": ("<e1> </e1> <e2>b</e2>", "an entity is empty"),
    "unseen": ("<e1>\u200b \u200d\ufe0f</e1> <e2>b</e2>", "an entity is empty"),
}


@pytest.mark.parametrize(("text", "why"), WRONG.values(), ids=WRONG)
def test_bad_marks_are_said_with_their_place(text: str, why: str) -> None:
    with pytest.raises(
        DataError, match=re.escape(f"file.tsv:7: {why}; mark two entities once each, as <e1>…")
    ):
        read_marked(text, "file.tsv:7")


FILE = """1\t"The <e1>author</e1> uses a <e2>disassembler</e2>."
Instrument-Agency(e2,e1)
Comment: Who "uses" what?

2\t"A <e1>ridge</e1> and a "<e2>surge</e2>"."
Other
Comment:

"""


def test_the_official_format_is_read(tmp_path: Path) -> None:
    (tmp_path / "train.semeval").write_text(FILE, "utf-8")
    one, two = read_rows([str(tmp_path / "train.semeval")], {"text": None, "label": None})
    assert one.cells == {"text": SENTENCE, "label": "Instrument-Agency(e2,e1)"}
    assert two.cells == {"text": 'A <e1>ridge</e1> and a "<e2>surge</e2>".', "label": "Other"}
    assert (one.line, two.line) == (1, 5)


def test_sentences_without_relations_can_be_read_alone(tmp_path: Path) -> None:
    (tmp_path / "test.semeval").write_text('8001\t"<e1>a</e1> <e2>b</e2>"\n8002\t"<e1>c</e1> <e2>d</e2>"\n')
    found = list(read_rows([str(tmp_path / "test.semeval")], {"text": None}))
    assert [row.cells["text"] for row in found] == ["<e1>a</e1> <e2>b</e2>", "<e1>c</e1> <e2>d</e2>"]
    with pytest.raises(
        DataError, match=r"test\.semeval:1: the sentence has no relation; it stands on the line"
    ):
        list(read_rows([str(tmp_path / "test.semeval")], {"text": None, "label": None}))


@pytest.mark.parametrize(
    ("content", "columns", "sentence"),
    [
        (
            FILE + "The ridge\nOther\n",
            {"text": None, "label": None},
            r"x\.semeval:9: not a sentence; one looks like",
        ),
        (
            FILE,
            {"text": None, "tags": None},
            "holds sentences and their relations, no tags; is the task right",
        ),
        (FILE, {"text": 2, "label": None}, r"x\.semeval: has no columns; leave out the column of text"),
        ("\n\n", {"text": None, "label": None}, r"x\.semeval: holds no records"),
    ],
)
def test_what_is_no_such_file_is_said(
    tmp_path: Path, content: str, columns: dict[str, int | None], sentence: str
) -> None:
    (tmp_path / "x.semeval").write_text(content, "utf-8")
    with pytest.raises(DataError, match=sentence):
        list(read_rows([str(tmp_path / "x.semeval")], columns))
