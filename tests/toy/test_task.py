"""A task that stands in no other table than TASKS goes through the commands."""

import json
import os
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

import regard
from regard.cli import app
from regard.recipe import Recipe
from regard.tasks import TASKS
from served import served


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The toy task stands in the table for the time of a test, in every process."""
    from toy.task import Sorting

    monkeypatch.setitem(TASKS, "toy_sorting", Sorting)
    tests, source = Path(__file__).parents[1], Path(regard.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{tests / 'toy' / 'site'}:{tests}:{source}")
    monkeypatch.chdir(tmp_path)


def call(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_task_stands_in_one_table(tmp_path: Path) -> None:
    draw = random.Random(7)
    boxes = {"amber": "warm", "ember": "warm", "inlet": "cool", "birch": "cool"}
    lines = [f"{word} {draw.choice('abc')}\t{boxes[word]}\n" for word in draw.choices([*boxes], k=80)]
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "".join(lines))
    call("init", "train.tsv", "--task", "toy_sorting")
    assert Recipe.read(tmp_path / "recipe.toml").task.kind == "toy_sorting"
    assert json.loads(call("check", "recipe.toml", "--json"))["trainable"]
    short = ("train.max_steps=60", "train.lr=1e-2", "train.warmup=5", "model.encoder.d_embed=13")
    call("train", "recipe.toml", "run=run", *short)
    assert call("predict", "run", "inlet a").strip() == "cool"
    assert regard.load(tmp_path / "run").explain("ember b").task == "toy_sorting"
    with served([tmp_path / "run"], tmp_path / "log", environment=dict(os.environ)) as server:
        reply = server.post("/v1/sort", text="ember b")
        assert [answer["text"] for answer in reply.json["answers"]] == ["warm"], reply.body
