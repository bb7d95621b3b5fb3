"""Conversations, from files to a chat and a served model."""

import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import regard
from regard.api.trained import Trained
from regard.check.examine import examine
from regard.cli import app
from regard.cli.chat import Chat
from regard.errors import DataError, RunError
from regard.files.row import Row
from regard.init.detect import detect
from regard.recipe import Recipe
from regard.runs.corpus import Corpus
from served import served
from tiny import gpt, talking

LEARNING = {"max_steps": 90, "eval_every": 45, "lr": 2e-2, "schedule": "constant", "batch_tokens": 400}
GPT: dict[str, Any] = gpt(max_positions=300, dropout=0.1).model_dump()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("talk")


@pytest.fixture(scope="module")
def trained(folder: Path) -> Trained:
    return regard.train(talking(folder, **LEARNING), quiet=True)


def test_it_learns_and_is_scored(trained: Trained, folder: Path) -> None:
    scores = trained.metrics["scores"]["valid"]
    assert set(scores) == {"loss", "probability", "perplexity", "bleu", "distinct_1", "distinct_2"}
    assert scores["perplexity"] < 6, "of 12 pieces, all equally likely"
    shown = CliRunner().invoke(app, ["eval", str(folder / "run")])
    assert shown.exit_code == 0, shown.output
    assert "2 rows" in shown.output
    assert "references" in shown.output


def test_a_gpt_learns_it_too(tmp_path: Path) -> None:
    trained = regard.train(talking(tmp_path, GPT, **LEARNING), quiet=True)
    assert trained.metrics["scores"]["valid"]["perplexity"] < 6
    assert trained.predict("amber\nbirch", beam=2).text
    explained = trained.explain("amber\nbirch")
    shown = explained.map("stack.layers.1.self")
    assert shown.columns.labels[:4] == ("amber", "</s>", "birch", "</s>")
    for row in range(len(shown.rows)):
        assert not shown.weights_HQK[:, row, 4 + row :].any(), "nothing that comes later"


def test_a_conversation_is_a_text_of_lines(trained: Trained) -> None:
    assert trained.predict("amber\nbirch").text == trained.predict("amber __eou__ birch").text
    explained = trained.explain("amber\nbirch")
    assert explained.map(explained.main).columns.labels == ("amber", "</s>", "birch", "</s>")
    assert list(trained.follow("amber\nbirch"))[-1] == trained.predict("amber\nbirch").text


def test_two_answer_together(trained: Trained, folder: Path) -> None:
    both = regard.load(folder / "run", folder / "run")
    expected = trained.metrics["scores"]["test"]["loss"]
    assert both.evaluate([str(folder / "test.jsonl")]).metrics["loss"] == pytest.approx(expected, rel=1e-4)


def test_a_reply_says_something(trained: Trained) -> None:
    assert trained.predict("amber\nbirch", min_length=0).text == "", "the likeliest is to say nothing"
    assert trained.predict("amber\nbirch").text


def test_a_chat_keeps_its_turns(trained: Trained) -> None:
    chat = Chat()
    asked = []
    typed = ["amber", "cedar", "", "ember"]
    for row in chat.asking(Row({"context": line}, "standard input", n) for n, line in enumerate(typed, 1)):
        text = row.cells["context"]
        asked.append(text)
        chat.hear(trained.predict(text) if text else None)
    first = trained.predict("amber").text
    assert first
    assert asked == ["amber", f"amber\n{first}\ncedar", "", "ember"]


def test_a_terminal_is_a_chat(trained: Trained, folder: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "regard", "predict", str(folder / "run")]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.write(ours, b"amber\ncedar\n\nember\n\x04")
        assert process.wait(60) == 0
    shown = os.read(ours, 10_000).decode().splitlines()
    first = trained.predict("amber").text
    expected = [first, trained.predict(f"amber\n{first}\ncedar").text, trained.predict("ember").text]
    assert shown[:4] == ["amber", "cedar", "", "ember"], "what was typed"
    assert [line.removeprefix("^D\b\b") for line in shown[4:]] == expected


def test_files_are_answered(trained: Trained, folder: Path) -> None:
    shown = CliRunner().invoke(app, ["predict", str(folder / "run"), "-f", str(folder / "test.jsonl")])
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == trained.predict("amber\nbirch cedar").text + "\n"


def test_a_file_is_read_with_the_mark_of_the_run(trained: Trained, folder: Path, tmp_path: Path) -> None:
    config = trained.task_config.model_copy(update={"separator": "||"})
    task = type(trained.task).load(config, folder / "run" / "model")
    replace(trained, task=task, task_config=config).save(tmp_path / "model")
    (tmp_path / "new.tsv").write_text("context\namber || birch\n", "utf-8")
    command = ["predict", str(tmp_path / "model"), "-f", str(tmp_path / "new.tsv"), "--json"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["input"] == "amber\nbirch"


def test_it_is_served(trained: Trained, folder: Path, tmp_path: Path) -> None:
    with served([folder / "run"], tmp_path / "log") as server:
        expected = [trained.predict("amber\nbirch").to_json()]
        assert server.post("/v1/reply", turns=["amber", "birch"]).json["answers"] == expected
        assert server.post("/v1/reply", text="amber\nbirch").json["answers"] == expected
        *_, (last, final) = server.post("/v1/reply", turns=["amber", "birch"], stream=True).events
        assert (last, [final["answer"]]) == ("answer", expected)
        for body in ({}, {"text": "amber", "turns": ["amber"]}):
            wrong = server.post("/v1/reply", **body)
            assert (wrong.status, wrong.json["error"]["message"]) == (422, "body: give either text or turns")
        long = server.post("/v1/reply", turns=["amber " * 800] * 2)
        assert "turns may have 5000 characters together" in long.json["error"]["message"]


def test_it_cannot_leave_yet(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="dialogue models cannot be exported yet"):
        trained.export(tmp_path / "out", "onnx", ["amber"])


@pytest.mark.parametrize(
    ("record", "columns"),
    [
        ({"id": "x", "turns": [["U", "Hi there."], ["S", "Hello."]]}, {"context": "turns", "reply": None}),
        ({"context": ["Hi."], "responses": ["Hello."]}, {"context": "context", "reply": "responses"}),
    ],
)
def test_its_files_are_recognised(record: Any, columns: Any, tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text((json.dumps(record) + "\n") * 30, "utf-8")
    guess = detect([str(path)])
    assert (guess.task, guess.columns) == ("dialogue", columns)
    out = tmp_path / "recipe.toml"
    made = CliRunner().invoke(app, ["init", str(path), "--out", str(out)])
    assert made.exit_code == 0, made.output
    assert Recipe.read(out).task.kind == "dialogue"


def test_lists_that_are_no_turns_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text('{"tokens": ["a", "b"], "ner": [0, 1]}\n' * 30, "utf-8")
    with pytest.raises(DataError, match="cannot tell the task"):
        detect([str(path)])


def test_a_reply_that_stands_twice_beside_its_context_is_told(tmp_path: Path) -> None:
    recipe = talking(tmp_path)
    with (tmp_path / "train.jsonl").open("w", encoding="utf-8") as file:
        for replies in (["delta", "ember", "delta", "delta"], ["fjord"], ["ember"]):
            file.write(json.dumps({"context": ["amber", "birch"], "responses": replies}) + "\n")
    found = {finding.kind: finding for finding in examine(recipe).findings}
    assert found["duplicates"].count == 3
    assert [place.where.partition(":")[2] for place in found["duplicates"].places] == ["1", "3"], "once each"
    assert found["duplicates"].places[0].excerpt == "amber / birch | delta"


def test_the_replies_to_a_context_are_held_out_together(tmp_path: Path) -> None:
    recipe = talking(tmp_path)
    with (tmp_path / "train.jsonl").open("w", encoding="utf-8") as file:
        for n in range(60):
            file.write(
                json.dumps({"context": [f"amber {n}"], "responses": ["birch", "cedar", "delta"]}) + "\n"
            )
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"valid": None})})
    report = examine(recipe)
    assert not [finding for finding in report.findings if finding.kind == "shared"]


def test_the_turns_of_a_conversation_are_held_out_together(tmp_path: Path) -> None:
    recipe = talking(tmp_path)
    with (tmp_path / "train.jsonl").open("w", encoding="utf-8") as file:
        for n in range(60):
            file.write(json.dumps({"turns": [f"amber {n}", "birch", "cedar", "delta"]}) + "\n")
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"valid": None})})
    held: list[Row] = []
    learnt = list(Corpus(recipe, tmp_path).learnt(held))
    assert [row.line for row in held] == [20, 20, 20, 40, 40, 40, 60, 60, 60]
    assert len(learnt) == 57 * 3
    assert not {row.line for row in held} & {row.line for row in learnt}


def test_what_is_wrong_with_the_data_is_told(tmp_path: Path) -> None:
    recipe = talking(tmp_path)
    with (tmp_path / "train.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"turns": ["amber"]}\n{"turns": ["amber", 5.5, null]}\n')
    found = [finding.message for finding in examine(recipe).findings if finding.severity == "error"]
    assert any("a conversation of one turn has no reply" in message for message in found)
    assert any("turn 3 of turns is null" in message for message in found)
    with pytest.raises(DataError, match=r"train\.jsonl:24: a conversation of one turn has no reply"):
        regard.train(recipe, quiet=True)
