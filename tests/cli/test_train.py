from pathlib import Path
from typing import Any

import pytest

from small_runs import Call


def test_trains_scores_and_says_what_is_next(call: Call, recipe: Path, home: Path) -> None:
    result = call("train", recipe, "run=here", "train.max_steps=2")
    assert result.exit_code == 0, result.stderr
    assert (home / "here" / "model" / "model.safetensors").is_file()
    assert "step 2: loss" in result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()[:2]] == ["valid", "test"]
    assert 'regard predict here "your text"' in result.stdout
    assert 'regard explain here "your text"' in result.stdout


def test_goes_on(call: Call, recipe: Path) -> None:
    assert call("train", recipe, "run=here", "train.max_steps=2").exit_code == 0
    result = call("train", recipe, "run=here", "train.max_steps=4", "--resume")
    assert result.exit_code == 0, result.stderr
    assert "step 4: loss" in result.stderr
    assert "step 2: loss" not in result.stderr


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        (True, "interrupted; go on with: regard train {run}/recipe.json --resume\n"),
        (False, "interrupted before the first validation, so nothing was kept; delete {run} before tr"),
    ],
)
def test_interrupted(
    call: Call, recipe: Path, home: Path, monkeypatch: pytest.MonkeyPatch, saved: bool, said: str
) -> None:
    def stop(*arguments: Any, **settings: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("regard.api.train", stop)
    if saved:
        (home / "run" / "checkpoints" / "step-00000002").mkdir(parents=True)
    result = call("train", recipe)
    assert result.exit_code == 130
    assert result.stderr.startswith(said.format(run=home / "run"))
