"""A GPT-2 of Hugging Face from the command line: imported, asked, explained, taught, sent back."""

import json
import pickle
from pathlib import Path

import pytest

from gpt2s import written
from small_runs import Call, write_recipe
from tiny import told

RECIPE = """
run = "{folder}/run"
[task]
kind = "language_model"
max_length = 20
[data]
train = "{folder}/told.txt"
[model]
kind = "gpt"
init_from = "hf"
[train]
max_steps = 2
threads = 1
"""


@pytest.fixture
def hf(home: Path) -> Path:
    written(home / "hf")
    (home / "told.txt").write_text(told(2000), "utf-8")
    return home / "hf"


def test_import_then_everything(call: Call, hf: Path, home: Path) -> None:
    said = call("import", "hf", "--out", "own")
    assert said.exit_code == 0, said.stderr
    assert said.stdout.splitlines() == ["wrote own", '  regard predict own "your text"']
    asked = call("predict", "own", "amber birch", "--beam", 1, "--set", "max_length=5", "--json")
    assert json.loads(asked.stdout)["text"]
    assert "perplexity" in call("eval", "own", "told.txt").stdout
    explained = call("explain", "own", "amber birch")
    assert explained.exit_code == 0, explained.stderr
    described = call("info", "own").stdout
    assert "gpt 2 layers, d=14, 2 heads" in described
    assert "elsewhere, before it was imported" in described
    assert "Imported with regard" in (home / "own" / "README.md").read_text("utf-8")


def test_teach_then_leave(call: Call, hf: Path, home: Path) -> None:
    recipe = write_recipe(home, RECIPE)
    checked = call("check", recipe)
    assert checked.exit_code == 0, checked.stdout
    assert "language_model with gpt from hf" in checked.stdout
    trained = call("train", recipe)
    assert trained.exit_code == 0, trained.stderr
    left = call("export", "run", "--to", "hf", "--out", "away", "--json")
    assert left.exit_code == 0, left.stderr
    told = json.loads(left.stdout)
    assert told["compared"] == told["inputs"] >= 200
    assert told["identical"] == 1.0
    assert told["max_difference"] < 1e-4
    assert call("import", "away", "--out", "back").stdout.splitlines()[0] == "wrote back"
    asked = ("amber bir", "cedar", "--beam", 1, "--set", "max_length=9")
    assert call("predict", "back", *asked).stdout == call("predict", "run", *asked).stdout


def refused(call: Call, *arguments: object) -> str:
    said = call(*arguments)
    assert said.exit_code == 2
    assert said.stdout == ""
    (line,) = said.stderr.splitlines()
    return str(line)


def test_what_is_wrong_is_one_sentence(call: Call, hf: Path, home: Path) -> None:
    recipe = write_recipe(home, RECIPE)
    assert "was not made by regard" in refused(call, "predict", "hf", "x")
    assert "model_type is 'gpt2', not 'bert'" in refused(call, "embed", "hf", "x")
    assert "model.d_model is 8" in refused(call, "train", recipe, "model.d_model=8")
    (hf / "model.safetensors").write_bytes(pickle.dumps({"weights": [1.0]}))
    assert "not a readable safetensors file" in refused(call, "train", recipe)
    assert "not a readable safetensors file" in refused(call, "import", "hf", "--out", "own")
    assert not (home / "own").exists()


def test_a_folder_that_is_none(call: Call, home: Path) -> None:
    said = call("import", "nowhere", "--out", "own")
    assert said.exit_code == 2
    sentence = "nowhere: not a Hugging Face folder, as it has no config.json; give another folder"
    assert said.stderr == f"error: {sentence}\n"
    assert not (home / "own").exists()
