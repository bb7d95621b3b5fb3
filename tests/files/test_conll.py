"""CoNLL in its widths, CoNLL-U, and what is refused."""

from pathlib import Path

import pytest

from regard.errors import DataError
from regard.files.columns import Column
from regard.files.conll import looks_like
from regard.files.read import read_rows, word_where
from regard.files.row import Row


def rows(path: Path, content: str, text: Column | None = None, tags: Column | None = None) -> list[Row]:
    path.write_text(content, "utf-8")
    return list(read_rows([str(path)], {"text": text, "tags": tags}))


def test_a_word_a_line_and_a_blank_line_between_sentences(tmp_path: Path) -> None:
    found = rows(tmp_path / "a.conll", "Anna NNP B-PER\nlives VBZ O\n\n\nshe PRP O")
    assert [row.cells for row in found] == [
        {"text": ["Anna", "lives"], "tags": ["B-PER", "O"]},
        {"text": ["she"], "tags": ["O"]},
    ]
    assert [row.line for row in found] == [1, 5]
    assert word_where(found[0], 1).endswith("a.conll:2")
    (first, _) = rows(tmp_path / "a.conll", "Anna NNP B-PER\nlives VBZ O\n\nshe PRP O\n", tags=2)
    assert first.cells["tags"] == ["NNP", "VBZ"]


def test_tabs_separate_cells_that_hold_spaces(tmp_path: Path) -> None:
    (found,) = rows(tmp_path / "a.bio", "New York\tB-LOC\n-DOCSTART- O\nis\tO\n")
    assert found.cells == {"text": ["New\u00a0York", "is"], "tags": ["B-LOC", "O"]}


def test_other_white_space_is_of_a_word(tmp_path: Path) -> None:
    """A space that does not break, or an ideographic one, separates nothing."""
    (found,) = rows(tmp_path / "a.conll", "10\u00a0000  O\n\u3000 O\nzero\u200b B-PER\n")
    assert found.cells == {"text": ["10\u00a0000", "\u00a0", "zero\u200b"], "tags": ["O", "O", "B-PER"]}


def test_the_universal_kind_has_comments_ranges_and_empty_nodes(tmp_path: Path) -> None:
    lines = [
        "# text = Don't go",
        "1-2\tDon't\t_\t_",
        "1\tDo\tdo\tAUX",
        "2\tn't\tnot\tPART",
        "2.1\tnone\t_\t_",
        "3\tgo\tgo\tVERB",
    ]
    (found,) = rows(tmp_path / "a.conllu", "\n".join(lines) + "\n")
    assert found.cells == {"text": ["Do", "n't", "go"], "tags": ["AUX", "PART", "VERB"]}
    assert word_where(found, 1).endswith("a.conllu:3, word 2")


@pytest.mark.parametrize(
    ("content", "columns", "said"),
    [
        (
            "Anna B-PER\nlives\n",
            {},
            r"a\.conll:2: 1 cell found, 2 needed; a word and its tag stand on one line",
        ),
        ("Anna\tB-PER\nlives\t\n", {}, r"a\.conll:2: the tag is empty; give the word one"),
        ("Anna B-PER\n", {"tags": 3}, r"a\.conll:1: 2 cells found, 3 needed"),
        (
            "Anna B-PER\n",
            {"tags": "ner"},
            r"a\.conll: its columns have no names; give the number of the tags",
        ),
        ("Anna B-PER\n", {"tags": 0}, r"a\.conll: column 0 for tags does not exist; columns count from 1"),
        ("a O\n" * 20_001, {}, r"a\.conll:20001: more than 20,000 words without a blank line"),
        ("\n\n", {}, r"a\.conll: holds no records"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str, columns: dict[str, Column], said: str) -> None:
    with pytest.raises(DataError, match=said):
        rows(tmp_path / "a.conll", content, **columns)


def test_other_tasks_have_no_such_files(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("Anna B-PER\n", "utf-8")
    with pytest.raises(
        DataError, match=r"a\.conll: holds words and their tags, no label; is the task right\?"
    ):
        list(read_rows([str(tmp_path / "a.conll")], {"text": None, "label": None}))


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        ("Anna B-PER\nlives O\n\nshe O\n", True),
        ("Anna\tB-PER\nlives\tO\n\nshe\tO\n", True),
        ("Anna B-PER\nlives O\nshe O\n", False),
        ("Anna B-PER\nlives\n\nshe O\n", False),
        ("a good film\ta\n\na bad film\tB-\n", False),
        ("one two\n\nthree four\n", False),
        ("", False),
    ],
)
def test_such_a_file_by_another_name(text: str, is_it: bool) -> None:
    assert looks_like(iter(text.splitlines())) == is_it
