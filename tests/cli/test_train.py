import json
import signal
from pathlib import Path
from typing import Any

import pytest

from regard.training.stopping import Interrupted
from small_runs import Call


def test_trains_scores_and_says_what_is_next(call: Call, recipe: Path, home: Path) -> None:
    result = call("train", recipe, "run=here", "train.max_steps=2")
    assert result.exit_code == 0, result.stderr
    assert (home / "here" / "model" / "model.safetensors").is_file()
    assert "step 2: loss" in result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()[:2]] == ["valid", "test"]
    assert 'regard predict here "your text"' in result.stdout
    assert 'regard explain here "your text"' in result.stdout


def test_a_longer_plan_goes_on_if_the_change_is_accepted(call: Call, recipe: Path, home: Path) -> None:
    assert call("train", recipe, "run=here", "train.max_steps=2").exit_code == 0
    refused = call("train", recipe, "run=here", "train.max_steps=4")
    assert refused.exit_code == 2
    assert refused.stderr.startswith(
        "error: here: recipe.train.max_steps was 2 and is now 4 since this run began"
    )
    result = call("train", recipe, "run=here", "train.max_steps=4", "--accept-changes")
    assert result.exit_code == 0, result.stderr
    assert "resuming from step 2\n" in result.stderr
    assert "step 4: loss" in result.stderr
    assert "step 2: loss" not in result.stderr
    written = json.loads((home / "here" / "identity.json").read_text("utf-8"))
    assert written["accepted_changes"] == [{"step": 2, "key": "recipe.train.max_steps", "was": 2, "is": 4}]
    again = call("train", recipe, "run=here", "train.max_steps=4")
    assert again.exit_code == 0
    assert "training has already finished" in again.stderr


def test_a_setting_that_is_newer_than_the_run_changes_nothing(call: Call, recipe: Path, home: Path) -> None:
    assert call("train", recipe, "run=here", "train.max_steps=2").exit_code == 0
    for name, table, key in (
        ("recipe.json", "train", "spike"),
        ("identity.json", "identity", "recipe.train.spike"),
    ):
        written = json.loads((home / "here" / name).read_text("utf-8"))
        del written[table][key]
        (home / "here" / name).write_text(json.dumps(written), "utf-8")
    again = call("train", recipe, "run=here", "train.max_steps=2")
    assert "training has already finished" in again.stderr
    other = call("train", recipe, "run=here", "train.max_steps=2", "train.spike=3")
    assert other.stderr.startswith("error: here: recipe.train.spike was not set and is now 3.0")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(
    call: Call, recipe: Path, monkeypatch: pytest.MonkeyPatch, signum: signal.Signals
) -> None:
    def stop(*arguments: Any, **settings: Any) -> None:
        raise Interrupted(signum)

    monkeypatch.setattr("regard.api.trained.train", stop)
    result = call("train", recipe)
    assert result.exit_code == 128 + signum
    assert result.stderr == "interrupted; the same command goes on from here\n"
