"""Conversations become rows: whole ones, contexts with replies, and what is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.errors import DataError
from regard.fields.turns import MOST_TURNS
from regard.files.row import Row
from regard.tasks import DialogueConfig, task_rows

ROLES = {"context": None, "reply": None}


def read(folder: Path, *records: Any, columns: Any = ROLES, **settings: Any) -> list[Row]:
    path = folder / "talk.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return list(task_rows(DialogueConfig(), [str(path)], columns, **settings))


@pytest.mark.parametrize(
    "turns",
    [
        ["Hi.", "Who  is\nthere?", "", "Me."],
        [["A", "Hi."], ["B", "Who is there?"], ["A", "Me."]],
        [{"speaker": "A", "text": "Hi."}, {"utterance": "Who is there?"}, {"role": "x", "content": "Me."}],
        "Hi. __eou__ Who is there? __eou__ Me. __eou__",
    ],
)
def test_every_turn_but_the_first_is_a_reply(turns: Any, tmp_path: Path) -> None:
    rows = read(tmp_path, {"id": 7, "turns": turns})
    assert [row.cells for row in rows] == [
        {"context": "Hi.", "reply": "Who is there?", "references": "Who is there?"},
        {"context": "Hi.\nWho is there?", "reply": "Me.", "references": "Me."},
    ]
    assert {row.line for row in rows} == {1}


def test_a_context_may_have_several_replies(tmp_path: Path) -> None:
    rows = read(tmp_path, {"context": ["Hi.", "Yes?"], "responses": ["One.", "Two."]})
    assert [row.cells["reply"] for row in rows] == ["One.", "Two."]
    assert [row.cells["references"] for row in rows] == ["One.\nTwo.", ""], "asked once"
    assert {row.cells["context"] for row in rows} == {"Hi.\nYes?"}
    (row,) = read(tmp_path, {"said": "Hi.", "then": "Yes?"}, columns={"context": "said", "reply": "then"})
    assert row.cells == {"context": "Hi.", "reply": "Yes?", "references": "Yes?"}


def test_a_reply_may_have_several_lines(tmp_path: Path) -> None:
    """They are no several replies; those stand in a list, or with the mark between them."""
    (row,) = read(tmp_path, {"context": "Hi.\nYes?", "reply": "One.\nTwo."})
    assert row.cells == {"context": "Hi.\nYes?", "reply": "One. Two.", "references": "One. Two."}
    (tmp_path / "talk.csv").write_text('context,reply\nHi.,"One.\nTwo. __eou__ Three."\n', "utf-8")
    rows = list(task_rows(DialogueConfig(), [str(tmp_path / "talk.csv")], ROLES))
    assert [row.cells["reply"] for row in rows] == ["One. Two.", "Three."]


def test_a_context_alone_is_not_taken_apart(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {"context": ["Hi.", "Yes?"]}, columns={"context": None})
    assert row.cells == {"context": "Hi.\nYes?"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("talk.tsv", "context\treply\nHi. __eou__ Yes?\tMe.\n"),
        ("talk.tsv", "Hi. __eou__ Yes?\tMe.\n"),
        ("talk.csv", 'reply,context\nMe.,"Hi.\nYes?"\n'),
    ],
)
def test_tables_hold_contexts_and_replies(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    (row,) = task_rows(DialogueConfig(), [str(tmp_path / name)], ROLES)
    assert row.cells == {"context": "Hi.\nYes?", "reply": "Me.", "references": "Me."}


@pytest.mark.parametrize(("name", "header"), [("talk.tsv", "id\tdialogue\n"), ("talk.txt", "")])
def test_a_line_may_be_a_whole_conversation(name: str, header: str, tmp_path: Path) -> None:
    begin = "7\t" if header else ""
    (tmp_path / name).write_text(f"{header}{begin}Hi. // Yes? // Me.\n", "utf-8")
    rows = list(task_rows(DialogueConfig(separator="//"), [str(tmp_path / name)], ROLES))
    assert [(row.cells["context"], row.cells["reply"]) for row in rows] == [
        ("Hi.", "Yes?"),
        ("Hi.\nYes?", "Me."),
    ]


def test_a_context_is_bounded(tmp_path: Path) -> None:
    rows = read(tmp_path, {"turns": [f"turn {number}" for number in range(MOST_TURNS + 5)]})
    assert len(rows) == MOST_TURNS + 4
    assert len(rows[-1].cells["context"].split("\n")) == MOST_TURNS
    assert rows[-1].cells["context"].endswith(f"turn {MOST_TURNS + 3}")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"turns": ["Hi."]}, "a conversation of one turn has no reply; it must have at least two"),
        ({"turns": []}, "a conversation of one turn has no reply"),
        ({"turns": {"a": "b"}}, "turns is an object; it must be a text, or a list of turns"),
        ({"turns": None}, "turns is null; it must be a text, or a list of turns"),
        ({"turns": ["Hi.", None]}, "turn 2 of turns is null; it must be a text"),
        ({"turns": ["Hi.", ["A", "B", "C"]]}, "turn 2 of turns is an array"),
        (
            {"turns": [{"speaker": "A"}, "Hi."]},
            "turn 1 of turns has no text; an object must hold one of text",
        ),
        ({"turns": ["Hi.", "\ud800"]}, "turn 2 of turns holds an escaped NUL or half of a surrogate"),
        ({"words": ["Hi.", "Yes."]}, "no column named like context; there are words"),
    ],
)
def test_what_is_no_conversation_is_refused(record: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"talk\.jsonl:1: {said}"):
        read(tmp_path, record)
    faults: list[DataError] = []
    rows = read(tmp_path, record, {"turns": ["Hi.", "Yes?"]}, refuse=faults.append)
    assert [row.line for row in rows] == [2]
    assert len(faults) == 1
