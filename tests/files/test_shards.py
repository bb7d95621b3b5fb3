"""Data in many files, and in Parquet: the rows are those of the one file they were made from."""

import gzip
import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.parquet import write_table

from regard.errors import DataError
from regard.files.read import read_rows
from regard.init.detect import detect
from regard.tasks import DialogueConfig, task_rows

PAIRS = [(f"a line {n}", f"eine zeile {n}") for n in range(23)]
ROLES = {"source": None, "target": None}


def fields(files: list[str], base: Path | None = None) -> list[tuple[str, str]]:
    return [(row.cells["source"], row.cells["target"]) for row in read_rows(files, ROLES, base=base)]


def shard(folder: Path, side: int, n: int, packed: bool = False) -> None:
    """One side of the pairs in files of n lines, of which every other is compressed if `packed`."""
    folder.mkdir(exist_ok=True)
    for number, start in enumerate(range(0, len(PAIRS), n)):
        text = "".join(f"{pair[side]}\n" for pair in PAIRS[start : start + n]).encode()
        if packed and number % 2:
            (folder / f"part-{number:03d}.txt.gz").write_bytes(gzip.compress(text))
        else:
            (folder / f"part-{number:03d}.txt").write_bytes(text)


def test_aligned_shards_are_read_in_their_order(tmp_path: Path) -> None:
    for side, name in enumerate(("en", "de")):
        shard(tmp_path / name, side, 5, packed=True)
    assert fields(["en/part-*", "de/part-*"], tmp_path) == PAIRS
    rows = list(read_rows(["en/part-*", "de/part-*"], ROLES, base=tmp_path))
    assert rows[5].where == "en/part-001.txt.gz:1"


def test_shards_of_records_too(tmp_path: Path) -> None:
    for number, start in enumerate((0, 10, 20)):
        lines = [f"{source}\t{target}\n" for source, target in PAIRS[start : start + 10]]
        (tmp_path / f"{number}.tsv").write_text("source\ttarget\n" + "".join(lines))
    assert fields(["*.tsv"], tmp_path) == PAIRS
    assert fields([str(tmp_path / "*.tsv")]) == PAIRS, "absolute patterns as well"


def test_sides_must_have_as_many_files(tmp_path: Path) -> None:
    shard(tmp_path / "en", 0, 5)
    shard(tmp_path / "de", 1, 12)
    with pytest.raises(DataError, match=r"en/\* matches 5, de/\* matches 2 files: every side needs as many"):
        fields(["en/*", "de/*"], tmp_path)


def test_shards_must_belong_together_line_by_line(tmp_path: Path) -> None:
    shard(tmp_path / "en", 0, 8)
    shard(tmp_path / "de", 1, 9)
    with pytest.raises(DataError, match=r"de/part-000\.txt:9 is the first without a partner"):
        fields(["en/*", "de/*"], tmp_path)


def test_a_pattern_without_a_match_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no/\*\.txt: no file matches this pattern"):
        fields(["no/*.txt", "de/*.txt"], tmp_path)


def test_a_file_may_look_like_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "data[1].tsv").write_text("a\tb\n")
    assert fields(["data[1].tsv"], tmp_path) == [("a", "b")]


@pytest.fixture
def parquet(tmp_path: Path) -> str:
    source, target = zip(*PAIRS, strict=True)
    table = pa.table({"id": range(23), "source": source, "target": target, "noise": [[1]] * 23})
    write_table(table, tmp_path / "pairs.parquet", row_group_size=7)
    return str(tmp_path / "pairs.parquet")


def test_parquet_gives_the_same_rows(parquet: str) -> None:
    assert fields([parquet]) == PAIRS
    rows = list(read_rows([parquet], {"text": "source", "label": "id"}))
    assert rows[7].cells == {"text": "a line 7", "label": "7"}
    assert rows[7].where == f"{parquet}:8"


def test_faults_of_parquet_are_said(parquet: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"pairs\.parquet: no column sauce; .*did you mean source\?"):
        list(read_rows([parquet], {"source": "sauce", "target": None}))
    with pytest.raises(DataError, match=r"pairs\.parquet:1: noise is an array"):
        list(read_rows([parquet], {"source": "source", "target": "noise"}))
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(
        DataError, match=r"twice\.parquet: several columns are named text; rename all but one"
    ):
        list(read_rows([str(tmp_path / "twice.parquet")], {"text": None}))
    (tmp_path / "no.parquet").write_text("this is none")
    with pytest.raises(DataError, match=r"no\.parquet: not a readable Parquet file"):
        fields([str(tmp_path / "no.parquet")])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "text is null; it must be a string, a number, true or false"),
        (b"abc", "text is of type bytes; it must be a string"),
        (date(2024, 5, 1), "text is of type date; it must be a string"),
        (Decimal("1.5"), "text is of type Decimal; it must be a string"),
        (float("nan"), "text is not a number; it must be a string"),
        (float("inf"), "text is not a number; it must be a string"),
    ],
    ids=str,
)
def test_what_is_no_text_is_called_what_it_is(value: object, said: str, tmp_path: Path) -> None:
    file = str(tmp_path / "a.parquet")
    write_table(pa.table({"text": [value]}), file)
    with pytest.raises(DataError, match=re.escape(f"{file}:1: {said}")):
        list(read_rows([file], {"text": None}))


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        (b"abc", "turns is of type bytes; it must be a text, or a list of turns"),
        ([float("nan")], "turn 1 of turns is not a number; it must be a text"),
    ],
    ids=str,
)
def test_what_is_no_turn_is_called_what_it_is(turns: object, said: str, tmp_path: Path) -> None:
    file = str(tmp_path / "a.parquet")
    write_table(pa.table({"turns": [turns]}), file)
    with pytest.raises(DataError, match=re.escape(f"{file}:1: {said}")):
        list(task_rows(DialogueConfig(), [file], {"context": "turns", "reply": None}))


def test_without_pyarrow_it_is_said_what_to_install(parquet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"needs pyarrow; install it with: pip install 'regard\[data\]'"):
        fields([parquet])


def test_both_are_recognised(parquet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    guess = detect(["pairs.parquet"])
    assert (guess.task, guess.columns, guess.n_rows) == (
        "translate",
        {"source": "source", "target": "target"},
        23,
    )
    for side, name in enumerate(("en", "de")):
        shard(tmp_path / name, side, 5)
    guess = detect(["en/*.txt", "de/*.txt"])
    assert (guess.task, guess.train, guess.n_rows) == ("translate", ("en/*.txt", "de/*.txt"), 23)
