import json
import shutil
from pathlib import Path

from regard.recipe import Recipe
from regard.runs.prepare import prepare
from regard.training.events import Saved
from small_runs import Call


def test_a_finished_run(call: Call, translator: Path) -> None:
    found = json.loads(call("info", translator, "--json").stdout)
    assert found["finished"] is True
    assert found["task"] == "translate"
    assert found["training"]["step"] == 4
    assert set(found["training"]["scores"]) == {"valid", "test"}
    weights = translator / "model" / "model.safetensors"
    assert found["files"]["model/model.safetensors"] == weights.stat().st_size
    shown = call("info", translator).stdout
    assert f"{found['parameters']:,}" in shown
    assert f"source {found['vocabulary']['source']}, target {found['vocabulary']['target']}" in shown
    assert "finished at step 4" in shown
    assert "model/model.safetensors" in shown


def test_a_model_folder(call: Call, classifier: Path) -> None:
    result = call("info", classifier / "model")
    assert result.exit_code == 0
    assert "no, yes" in result.stdout


def test_metrics_that_do_not_tell_of_an_end(call: Call, classifier: Path, home: Path) -> None:
    folder = Path(shutil.copytree(classifier / "model", home / "model"))
    for metrics in ('{"scores": {"test": {"accuracy": 1}}}', '{"step": "x", "scores": {}}'):
        (folder / "metrics.json").write_text(metrics)
        result = call("info", "model")
        assert result.exit_code == 0, result.stderr
        assert "no, yes" in result.stdout


def test_an_unfinished_run(call: Call, recipe: Path, home: Path) -> None:
    with prepare(Recipe.read(recipe)) as half:
        for event in half.events():
            if isinstance(event, Saved) and event.step == 2:
                break
    with (home / "run" / "metrics.jsonl").open("a") as journal:
        journal.write('{"event": "step", "st')  # a crash
    found = json.loads(call("info", "run", "--json").stdout)
    assert found["finished"] is False
    assert found["training"]["step"] == 2
    assert found["training"]["best"]["step"] == 2
    shown = call("info", "run").stdout
    assert "not finished: step 2" in shown
    assert "go on with: regard train run/recipe.json" in shown
    shutil.rmtree(home / "run" / "task")
    result = call("info", "run")
    assert result.exit_code == 2
    assert "training has not begun; run its regard train command again" in result.stderr
