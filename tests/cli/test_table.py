"""`regard predict -f IN --out OUT`: the columns of a file with those of the answers beside them."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import regard
from small_runs import Call

TEXTS = ['good film, "1"', "bad film\t2", "", "good film 3"]


def rows_of(path: Path) -> list[dict[str, Any]]:
    from pyarrow.parquet import read_table

    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = read_table(path).to_pylist()
        return rows
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    if path.suffix == ".csv":
        return list(csv.DictReader(text.splitlines()))
    header, *lines = (line.split("\t") for line in text.splitlines())
    return [dict(zip(header, line, strict=True)) for line in lines]


@pytest.fixture
def films(home: Path) -> Path:
    with (home / "in.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["id", "text", "answer"], *([n, text, "old"] for n, text in enumerate(TEXTS))])
    return home / "in.csv"


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_columns_are_kept_and_answers_stand_beside_them(
    call: Call, classifier: Path, films: Path, home: Path, suffix: str
) -> None:
    result = call("predict", classifier, "-f", films.name, "--out", f"out.{suffix}", "--top", "2")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"wrote out.{suffix}: 4 rows\n"
    rows = rows_of(home / f"out.{suffix}")
    assert [row["id"] for row in rows] == ["0", "1", "2", "3"]
    assert [row["answer"] for row in rows] == ["old"] * 4, "a column of the file keeps its name"
    texts = [text.replace("\t", " ") for text in TEXTS] if suffix == "tsv" else TEXTS
    assert [row["text"] for row in rows] == texts
    trained = regard.load(classifier)
    for row, text in zip(rows, TEXTS, strict=True):
        if not text:
            assert not row["predicted_answer"]
            assert not row.get("probability")
            continue
        (first, p), (second, q) = trained.predict(text).ranked()
        assert (row["predicted_answer"], row["answer_2"]) == (first, second)
        assert float(row["probability"]) == pytest.approx(p, abs=1e-4)
        assert float(row["probability_2"]) == pytest.approx(q, abs=1e-4)
        assert "probabilities" not in row


def test_numbers_of_json_lines_stay_numbers(call: Call, classifier: Path, home: Path) -> None:
    record = {"id": 7, "text": "good film", "rating": 4.5, "nested": {"a": [1, None]}}
    (home / "in.jsonl").write_text(json.dumps(record) + "\n\n" + json.dumps(record | {"more": True}) + "\n")
    assert call("predict", classifier, "-f", "in.jsonl", "--out", "out.jsonl").exit_code == 0
    first, second = rows_of(home / "out.jsonl")
    assert {name: first[name] for name in record} == record
    assert second["more"] is True
    assert set(first) - set(record) == {"answer", "probability", "input_cut"}


def test_parquet_keeps_its_types(call: Call, classifier: Path, home: Path) -> None:
    import pyarrow
    from pyarrow.parquet import read_table, write_table

    write_table(pyarrow.table({"n": [1, 2], "text": ["good film", "bad film"]}), home / "in.parquet")
    assert call("predict", classifier, "-f", "in.parquet", "--out", "out.parquet").exit_code == 0
    schema = read_table(home / "out.parquet").schema
    assert str(schema.field("n").type) == "int64"
    assert str(schema.field("probability").type) == "double"


def test_a_translator_writes_its_n_best(call: Call, translator: Path, home: Path) -> None:
    (home / "in.txt").write_text("一二\n三\n", "utf-8")
    result = call("predict", translator, "-f", "in.txt", "--out", "out.csv", "--top", "2")
    assert result.exit_code == 0, result.stderr
    rows = rows_of(home / "out.csv")
    best = regard.load(translator).predict(["一二", "三"], n_best=2)
    assert [(row["source"], row["answer"], row["answer_2"]) for row in rows] == [
        (text, one.text, one.others[0].text) for text, one in zip(("一二", "三"), best, strict=True)
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["-f", "in.csv", "--out", "out.xlsx"],
            "--out out.xlsx: give a name that ends in .csv, .tsv, .jsonl",
        ),
        (["-f", "in.csv", "--out", "in.csv"], "--out in.csv: is the file that is read; choose another name"),
        (["-f", "in.csv", "--out", "no/out.csv"], "--out no/out.csv: no such folder; make it"),
        (
            ["good film", "--out", "out.csv"],
            "--out out.csv: a table is written of a file's rows; name it with",
        ),
        (
            ["-f", "strange.csv", "--out", "out.csv"],
            "strange.csv: no column is named text (there are: id, body); say which",
        ),
        (["-f", "broken.csv", "--out", "out.csv"], "broken.csv:3: not valid CSV"),
    ],
)
def test_what_cannot_be_written_leaves_nothing(
    call: Call, classifier: Path, films: Path, home: Path, arguments: list[str], sentence: str
) -> None:
    (home / "strange.csv").write_text("id,body\n1,good film\n")
    (home / "broken.csv").write_text('id,text\n1,good film\n2,"bad\n')
    before = films.read_bytes()
    result = call("predict", classifier, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert sentence in line
    assert films.read_bytes() == before
    assert not list(home.glob("*out*"))
