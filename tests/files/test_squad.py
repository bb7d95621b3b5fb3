"""SQuAD's files: what is read, what is refused and by which id, and nothing without bounds."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from regard.errors import DataError
from regard.fields.span import answer_places, first_answer
from regard.files import squad
from regard.files.columns import Column
from regard.files.read import read_rows
from regard.init.detect import detect
from regard.tasks import AnswerConfig, task_rows

CONTEXT = "  The fog lies on the Rhine.\n"
COLUMNS: dict[str, Column | None] = dict.fromkeys(squad.ROLES)


def asks(*answers: tuple[str, Any], **more: Any) -> dict[str, Any]:
    told = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": "q7", "question": "Where?", "answers": told} | more


def written(folder: Path, *qas: Any, name: str = "train.json", **paragraph: Any) -> str:
    paragraphs = [{"context": CONTEXT, "qas": list(qas)} | paragraph]
    content = json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}).encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return name


@pytest.mark.parametrize("name", ["train.json", "train.json.gz"])
def test_answers_keep_their_places_and_contexts_their_space(tmp_path: Path, name: str) -> None:
    two = asks(("the Rhine", 18), ("Rhine", 22), ("the Rhine", 18))
    written(tmp_path, two, asks(id=8), asks(("fog", 6), is_impossible=True), name=name)
    first, second, third = task_rows(AnswerConfig(), [name], COLUMNS, base=tmp_path)
    assert (first.cells["question"], first.cells["context"]) == ("Where?", CONTEXT)
    assert first.where == f"{name}:q7"
    assert (second.id, second.line, answer_places(second)) == ("8", 2, [])
    assert answer_places(third) == [], "v2 lists plausible answers to questions that have none"
    assert answer_places(first) == [(18, 27), (22, 27)]


def test_only_what_is_wanted(tmp_path: Path) -> None:
    written(tmp_path, asks(("fog", 6)))
    wanted: dict[str, Column | None] = {"question": None, "context": None}
    (row,) = read_rows(["train.json"], wanted, base=tmp_path)
    assert list(row.cells) == ["question", "context"]
    written(tmp_path, asks(("fog", 3)))
    assert len(list(read_rows(["train.json"], wanted, base=tmp_path))) == 1, "its answer is not looked at"


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (
            asks(("fog", 5)),
            "question q7: the answer 'fog' does not stand at character 5 of its context, but at 6: count",
        ),
        (asks(("fog", -23)), "question q7: the answer 'fog' does not stand at character -23"),
        (
            asks(("Fog", 6)),
            "'Fog' does not stand at character 6 of its context, nor anywhere else; write it as it stands",
        ),
        (asks(("", 3)), "question q7: an answer is empty; a question without one has no answers"),
        (asks(("fog", "6")), 'question q7: an answer needs a "text" and the number "answer_start"'),
        (asks(("fog", True)), 'question q7: an answer needs a "text" and the number'),
        (asks(("fog", 10**4000)), 'question q7: an answer needs a "text" and the number'),
        (asks(question=3), 'question q7: has no "question" that is a text'),
        (asks(question="a\0"), "question q7: its question holds an escaped NUL"),
        (asks(answers={}), 'question q7: its "answers" are not a list'),
        ("Where?", 'question article 1, paragraph 1, question 2: has no "question"'),
        (asks(("fog", 5), id="q\x1b7"), "question q7: the answer"),
    ],
)
def test_a_bad_question_is_refused_by_its_id(tmp_path: Path, one: Any, said: str) -> None:
    written(tmp_path, asks(("fog", 6), id="good"), one, asks(("fog", 6), id="after"))
    with pytest.raises(DataError) as refused:
        list(task_rows(AnswerConfig(), ["train.json"], COLUMNS, base=tmp_path))
    assert str(refused.value).startswith("train.json: question ")
    assert said in str(refused.value)
    faults: list[DataError] = []
    rows = list(task_rows(AnswerConfig(), ["train.json"], COLUMNS, base=tmp_path, refuse=faults.append))
    assert [row.id for row in rows] == ["good", "after"]
    assert len(faults) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"question": "a"}\n{"question": "b"}', "JSON lines have a name in .jsonl"),
        (b'{"data": {}}', 'no list of articles under "data"'),
        (b'{"data": [3]}', 'article 1 has no list of "paragraphs"'),
        (b'{"data": [{"paragraphs": [{"qas": []}]}]}', 'article 1, paragraph 1 needs a "context"'),
        (b'{"data": []}', "holds no questions"),
        (b" \n", "is empty; give a file with at least one question"),
        (b'{"data": "\xff"}', "is not valid utf-8"),
        (
            '{"data": "雾"}'.encode("gb18030"),
            'the file is valid gb18030: say so with data.encoding = "gb18030"',
        ),
        (gzip.compress(b'{"data": []}', mtime=0), "is gzip-compressed, so its name must end in .gz"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "train.json").write_bytes(content)
    with pytest.raises(DataError, match=r"train\.json: ") as refused:
        list(task_rows(AnswerConfig(), ["train.json"], COLUMNS, base=tmp_path))
    assert said in str(refused.value)


def test_size_is_bounded_also_of_what_is_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(squad, "MAX_BYTES", 1000)
    (tmp_path / "train.json.gz").write_bytes(gzip.compress(b" " * 1001, mtime=0))
    with pytest.raises(DataError, match="more than 1,000 bytes of JSON; give several smaller files"):
        list(task_rows(AnswerConfig(), ["train.json.gz"], COLUMNS, base=tmp_path))
    (tmp_path / "train.json.gz").write_bytes(gzip.compress(b" " * 50, mtime=0)[:-4])
    with pytest.raises(DataError, match="damaged gzip data"):
        list(task_rows(AnswerConfig(), ["train.json.gz"], COLUMNS, base=tmp_path))


def test_roles_and_columns_that_it_does_not_have(tmp_path: Path) -> None:
    written(tmp_path, asks(("fog", 6)))
    with pytest.raises(DataError, match=r"no text; JSON lines have a name that ends in .jsonl"):
        list(read_rows(["train.json"], {"text": None}, base=tmp_path))
    with pytest.raises(DataError, match="the context has its place in SQuAD's files; leave out its column"):
        list(read_rows(["train.json"], {"context": "passage"}, base=tmp_path))


def listed(folder: Path, suffix: str, *answers: Any, name: str = "answers") -> str:
    """A table in which each of these is what a question's answers are."""
    records = [{"id": "q", "question": "Where?", "context": CONTEXT, name: each} for each in answers]
    path = folder / f"train{suffix}"
    if suffix == ".parquet":
        parquet.write_table(pyarrow.Table.from_pylist(records), path)
    else:
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path.name


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_answers_as_lists_in_a_table(tmp_path: Path, suffix: str) -> None:
    two = {"text": ["the Rhine", "Rhine"], "answer_start": [18, 22]}
    file = listed(tmp_path, suffix, two, {"text": [], "answer_start": []})
    first, second = task_rows(AnswerConfig(), [file], COLUMNS, base=tmp_path)
    assert (first.cells["context"], first_answer(first)) == (CONTEXT, "the Rhine")
    assert answer_places(first) == [(18, 27), (22, 27)]
    assert (first_answer(second), answer_places(second)) == ("", [])
    (asked, _) = read_rows([file], {"question": None, "context": None}, base=tmp_path)
    assert asked.cells == {"question": "Where?", "context": CONTEXT.strip()}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"text": ["fog"], "answer_start": [3]}, "'fog' does not stand at character 3 of its context"),
        ({"text": ["fog"], "answer_start": []}, "need lists .* of the same length"),
        ({"text": ["fog"], "answer_start": ["x"]}, 'an answer needs a "text" and the number "answer_start"'),
        ({"text": ["fog"], "answer_start": ["9" * 5000]}, 'an answer needs a "text" and the number'),
        ({"text": "fog", "answer_start": [6]}, "need lists .* of the same length"),
        ({"text": ["fog"]}, 'its "answers" are not a list'),
    ],
)
def test_bad_lists_are_refused_by_their_line(tmp_path: Path, answers: Any, said: str) -> None:
    listed(tmp_path, ".jsonl", answers)
    with pytest.raises(DataError, match=rf"train\.jsonl:1: .*{said}"):
        list(task_rows(AnswerConfig(), ["train.jsonl"], COLUMNS, base=tmp_path))


def test_init_knows_answers_as_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = listed(tmp_path, ".jsonl", *[{"text": ["the Rhine"], "answer_start": [18]}] * 30)
    found = detect([file])
    assert (found.task, found.columns["answer"]) == ("answer", "answers")
