"""A BERT of Hugging Face from the command line: looked at, imported, embedded with, fine-tuned, refused."""

import json
import pickle
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from berts import TEXTS, written
from small_runs import Call, write_recipe

RECIPE = """
run = "{folder}/run"
[task]
kind = "classify"
max_length = 20
[data]
train = "{folder}/texts.csv"
[model]
kind = "classifier"
init_from = "bert"
pooling = "pooler"
[train]
max_steps = 2
threads = 1
"""


@pytest.fixture
def bert(home: Path) -> Path:
    written(home / "bert")
    return home / "bert"


def test_import_says_what_it_can_be_asked(call: Call, home: Path) -> None:
    written(home / "pretrained", "BertForPreTraining")
    asked = 'regard predict own "your [MASK]"'
    assert call("import", "pretrained", "--out", "own").stdout.splitlines() == ["wrote own", f"  {asked}"]
    assert asked.replace("own", "THIS_FOLDER") in (home / "own" / "README.md").read_text("utf-8")
    assert call("predict", "own", "your [MASK]").exit_code == 0


def test_import_then_embed(call: Call, bert: Path) -> None:
    said = call("import", "bert", "--out", "own")
    assert said.exit_code == 0, said.stderr
    assert said.stdout.splitlines() == [
        "wrote own",
        "an encoder alone: it embeds texts, or begins a training (model.init_from)",
        '  regard embed own "your text"',
    ]
    lines = {
        name: [json.loads(line) for line in call("embed", name, *TEXTS).stdout.splitlines()]
        for name in ("bert", "own")
    }
    assert lines["own"] == lines["bert"]
    assert [line["input"] for line in lines["own"]] == TEXTS
    assert all(len(line["embedding"]) == 14 for line in lines["own"])


def test_vectors_of_a_file_are_an_array(call: Call, bert: Path, home: Path) -> None:
    (home / "texts.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    said = call("embed", "bert", "--file", "texts.txt", "--out", "vectors.npy")
    assert said.stdout == "wrote vectors.npy: 5 vectors of 14 numbers\n"
    piped = call("embed", "bert", input="\n".join(TEXTS) + "\n").stdout.splitlines()
    expected = [json.loads(line)["embedding"] for line in piped]
    np.testing.assert_allclose(np.load(home / "vectors.npy"), expected, atol=1e-6)


def test_fine_tune_then_leave(call: Call, bert: Path, home: Path) -> None:
    recipe = write_recipe(home, RECIPE)
    assert call("check", recipe).exit_code == 0
    trained = call("train", recipe)
    assert trained.exit_code == 0, trained.stderr
    assert "bert classifier from bert, d=14, pooler pooling" in call("info", "run").stdout
    assert call("predict", "run", "good film 2").stdout.strip() in ("yes", "no")
    left = call("export", "run", "--to", "hf", "--out", "away")
    assert left.exit_code == 0, left.stderr
    assert call("import", "away", "--out", "back").stdout.splitlines()[0] == "wrote back"
    asked = ("good film 2", "bad film 0")
    assert call("predict", "back", *asked).stdout == call("predict", "run", *asked).stdout


def test_vectors_are_written_whole_or_not_at_all(
    call: Call, bert: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(file: BinaryIO, vectors: object) -> None:
        file.write(b"half")
        raise OSError("14 requested and 3 written")

    monkeypatch.setattr(np, "save", save)
    said = refused(call, "embed", "bert", "--out", "x.npy", "x")
    assert "x.npy: cannot be written (14 requested and 3 written)" in said
    assert [path.name for path in home.iterdir()] == ["bert"]


def refused(call: Call, *arguments: object) -> str:
    said = call(*arguments)
    assert said.exit_code == 2
    assert said.stdout == ""
    (line,) = said.stderr.splitlines()
    return str(line)


def test_what_is_wrong_is_one_sentence(call: Call, bert: Path, home: Path) -> None:
    recipe = write_recipe(home, RECIPE)
    assert "a name that ends in .npy" in refused(call, "embed", "bert", "--out", "x.txt", "x")
    (home / "x.npy").touch()
    assert "already exists" in refused(call, "embed", "bert", "--out", "x.npy", "x")
    said = refused(call, "embed", "bert", "--out", "nowhere/x.npy", "x")
    assert "nowhere/x.npy: no such folder; make it, or choose another" in said
    assert "was not made by regard" in refused(call, "predict", "bert", "x")
    assert "nowhere: no such folder" in refused(call, "train", recipe, "model.init_from=nowhere")
    (bert / "model.safetensors").write_bytes(pickle.dumps({"weights": [1.0]}))
    assert "not a readable safetensors file" in refused(call, "train", recipe)
    assert "not a readable safetensors file" in refused(call, "import", "bert", "--out", "own")
    assert not (home / "own").exists()
