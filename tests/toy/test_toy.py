"""A kind of data that `src` has never heard of goes through all commands."""

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import regard
from regard.cli import app
from regard.fields import FIELDS
from regard.models.encoders import ENCODERS
from regard.recipe import Recipe
from served import served

Call = Callable[..., Any]
SMALL = ("train.max_steps=60", "train.batch_tokens=1024", "train.lr=3e-3", "train.warmup=5")


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The toy field and its encoder stand in the tables for the time of a test, in every process."""
    from toy.image import ToyImage, ToyPatchesConfig

    monkeypatch.setitem(FIELDS, "toy", ToyImage)
    monkeypatch.setitem(ENCODERS, "patches", ToyPatchesConfig)
    tests = Path(__file__).parents[1]
    source = Path(regard.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{tests / 'toy' / 'site'}:{tests}:{source}")
    monkeypatch.chdir(tmp_path)


def call(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def pictures(n: int, seed: int) -> list[dict[str, Any]]:
    """Noise with a bright half: which half is the label."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        right = int(rng.integers(2))
        pixels = rng.normal(0, 0.5, (8, 8))
        pixels[2:6, 4 * right : 4 * right + 4] += 1
        found.append({"toy": pixels.round(3).tolist(), "label": ("left", "right")[right]})
    return found


def write(folder: Path) -> None:
    for seed, (split, n) in enumerate({"train": 300, "valid": 60, "test": 60}.items()):
        lines = "".join(json.dumps(one) + "\n" for one in pictures(n, seed))
        (folder / f"{split}.jsonl").write_text(lines)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write(tmp_path)
    assert call("init", "train.jsonl", "valid.jsonl", "test.jsonl").exit_code == 0
    result = call("train", "recipe.toml", "run=run", *SMALL)
    assert result.exit_code == 0, result.output
    return tmp_path / "run"


def test_init_recognises_it_and_writes_a_recipe_that_trains(tmp_path: Path) -> None:
    write(tmp_path)
    result = call("init", "train.jsonl", "valid.jsonl", "test.jsonl")
    assert result.exit_code == 0, result.output
    recipe = tomllib.loads((tmp_path / "recipe.toml").read_text())
    assert recipe["fields"] == {"toy": {"side": 8}}
    assert recipe["model"]["encoder"]["kind"] == "patches"
    assert Recipe.read(tmp_path / "recipe.toml").task.inputs == ("toy",)
    result = call("check", "recipe.toml", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["trainable"]


def test_check_finds_what_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path)
    assert call("init", "train.jsonl", "valid.jsonl", "test.jsonl").exit_code == 0
    with (tmp_path / "test.jsonl").open("a") as file:
        file.write(json.dumps({"toy": [[1, 2], [3, 4]], "label": "left"}) + "\n")
    result = call("check", "recipe.toml", "--json")
    assert result.exit_code == 2
    (finding,) = json.loads(result.stdout)["findings"]
    assert finding["kind"] == "unreadable"
    assert "test.jsonl:61: the image is not 8 rows of 8 numbers each" in finding["message"]


def test_it_is_learnt_scored_answered_and_explained(run: Path, tmp_path: Path) -> None:
    scores = json.loads((run / "model" / "metrics.json").read_text())["scores"]["test"]
    assert scores["accuracy"] > 85
    asked = pictures(1, 9)[0]
    (tmp_path / "asked.json").write_text(json.dumps(asked["toy"]))
    result = call("predict", "run", "toy=@asked.json")
    assert result.stdout.strip() == asked["label"]
    assert call("eval", "run", "test.jsonl").exit_code == 0
    result = call("explain", "run", "toy=@asked.json")
    assert result.exit_code == 0, result.output
    explanation = regard.load(run).explain(asked["toy"])
    columns = explanation.map("pooling.attention").columns
    assert (columns.unit, columns.grid, len(columns.free)) == ("patch", (4, 4), 16)
    assert explanation.map("pooling.attention").title == "pooling: label → patches"
    assert explanation.trust is not None


def test_a_killed_run_goes_on_to_the_same_weights(run: Path, tmp_path: Path) -> None:
    from regard.runs.prepare import prepare
    from regard.training.events import Step

    recipe = Recipe.read(tmp_path / "recipe.toml", ["run=again", "train.save_every=20", *SMALL])
    with prepare(recipe) as begun:
        for event in begun.events():
            if isinstance(event, Step) and event.step == 37:
                break
    assert call("train", "recipe.toml", "run=again", "train.save_every=20", *SMALL).exit_code == 0
    first, second = (regard.load(tmp_path / name).model.state_dict() for name in ("run", "again"))
    assert all(first[name].equal(second[name]) for name in first)


def test_it_is_the_same_alone_and_in_any_batch(run: Path) -> None:
    trained = regard.load(run)
    asked = [one["toy"] for one in pictures(7, 11)]
    together = [answer.text for answer in trained.predict(asked)]
    assert together == [trained.predict([one])[0].text for one in asked]


def test_a_server_answers_it(run: Path) -> None:
    asked = pictures(2, 13)
    with served([run], run.parent / "log", environment=dict(os.environ)) as server:
        inputs = [{"toy": one["toy"]} for one in asked]
        reply = server.post("/v1/ask", inputs=inputs)
        assert reply.status == 200, reply.body
        assert [answer["text"] for answer in reply.json["answers"]] == [
            answer.text for answer in regard.load(run).predict([one["toy"] for one in asked])
        ]
        explained = server.post("/v1/ask", inputs=inputs[0], attention=True).json["answers"][0]
        grids = [axis.get("grid") for axis in explained["attention"]["axes"]]
        assert [4, 4] in grids
        refused = server.post("/v1/ask", inputs={"toy": "/etc/passwd"})
        assert refused.status == 422
        assert "must be 8 lists of 8 numbers" in refused.json["error"]["message"]


def test_an_encoder_that_reads_something_else_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    assert call("init", "train.jsonl").exit_code == 0
    result = call("train", "recipe.toml", "model.encoder.kind=rnn")
    assert result.exit_code == 2
    assert "model.encoder: rnn reads tokens, but the task's input is toys; use patches" in result.output
