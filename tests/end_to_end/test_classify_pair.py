"""One label for two texts, from somebody's file to a served answer."""

import json
import random
import tomllib
from pathlib import Path

import pytest

import regard
from end_to_end.test_multilabel import call
from regard.check.examine import examine
from regard.errors import DataError, RunError
from regard.init.detect import detect
from regard.recipe import Recipe
from served import served
from tiny import WORDS


def paired(folder: Path, n_rows: int, name: str = "train", header: str = "") -> str:
    """Whether the second begins with the word that the first begins with."""
    rng = random.Random(name)
    lines = [header] if header else []
    for _ in range(n_rows):
        first, second = (rng.choices(WORDS[:5], k=rng.randint(3, 5)) for _ in range(2))
        if rng.random() < 0.5:
            second[0] = first[0]
        lines.append(
            "\t".join((" ".join(first), " ".join(second), "same" if first[0] == second[0] else "other"))
        )
    path = folder / f"{name}.tsv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    files = [paired(folder, n, name) for name, n in (("train", 300), ("valid", 40), ("test", 41))]
    assert call("init", *files, "--out", folder / "recipe.toml").exit_code == 0
    encoder = '{kind="rnn", d_embed=16, d_hidden=16, dropout=0.0}'
    settings = [f"run={folder / 'run'}", f"model.encoder={encoder}", "model.dropout=0", "train.max_steps=30"]
    regard.train(folder / "recipe.toml", *settings, "task.tokenizer.kind=word", "train.warmup=5", quiet=True)
    return folder / "run"


@pytest.mark.parametrize("header", ["", "premise\thypothesis\tlabel", "sentence1\tsentence2\tclass"])
def test_init_recognises_pairs(tmp_path: Path, header: str) -> None:
    guess = detect([paired(tmp_path, 90, header=header)])
    first, second, label = header.split("\t") if header else (1, 2, 3)
    assert guess.task == "classify_pair"
    assert guess.columns == {"text": first, "second": second, "label": label}


def test_init_is_told(tmp_path: Path) -> None:
    file = paired(tmp_path, 90)
    columns = [part for one in ("text=2", "second=1", "label=3") for part in ("--column", one)]
    assert call("init", file, *columns, "--out", tmp_path / "recipe.toml").exit_code == 0
    written = tomllib.loads((tmp_path / "recipe.toml").read_text("utf-8"))
    assert written["task"]["kind"] == "classify_pair"
    assert written["data"]["columns"] == {"text": 2, "second": 1, "label": 3}


def test_scores_and_answers(run: Path) -> None:
    found = json.loads(call("eval", run, "--json").stdout)
    assert set(found["intervals"]) == {"accuracy", "macro_f1"}
    trained = regard.load(run)
    asked = {"text": "amber birch", "second": "amber cedar"}
    answer = trained.predict(asked)
    told = json.loads(
        call("predict", run, f"text={asked['text']}", f"second={asked['second']}", "--json").stdout
    )
    assert told["input"] == asked
    assert told["probabilities"] == answer.to_json()["probabilities"]
    swapped = trained.predict({"text": asked["second"], "second": asked["text"]})
    assert swapped.probabilities != answer.probabilities
    rows = call("predict", run, "--file", run.parent / "test.tsv").stdout.splitlines()
    assert len(rows) == 41
    shown = trained.explain(asked)
    assert shown.maps[0].columns.labels == ("amber", "birch", "</s>", "amber", "cedar", "</s>")


def test_what_cannot_be_asked(run: Path, tmp_path: Path) -> None:
    trained = regard.load(run)
    with pytest.raises(DataError, match="give text and second, as in"):
        trained.predict("amber")
    with pytest.raises(RunError, match="ct2: a classifier has no counterpart in CTranslate2; export to onnx"):
        trained.export(tmp_path / "there", "ct2", [{"text": "amber", "second": "birch"}])
    with pytest.raises(DataError, match="input 1: give text and second, as in"):
        trained.export(tmp_path / "there", "onnx", ["amber"])
    result = call("predict", run, "amber")
    assert result.exit_code == 2
    assert "this model is asked with text and second; write each as NAME=VALUE" in result.stderr
    result = call("predict", run, "text=amber", "context=birch")
    assert (result.exit_code, result.stdout) == (2, "")


def test_it_leaves_proven_on_a_table(run: Path, tmp_path: Path) -> None:
    away = ("export", run, "--to", "onnx", "--out", tmp_path / "away", "--json")
    result = call(*away, "--inputs", run.parent / "test.tsv")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["inputs"], told["identical"]) == (41, 1.0)
    assert told["max_difference"] < 1e-4
    (tmp_path / "lines.txt").write_text("amber\n", "utf-8")
    result = call("export", run, "--to", "onnx", "--inputs", tmp_path / "lines.txt")
    assert result.exit_code == 2
    assert "plain text needs one file for each of text, second" in result.stderr


def test_check_looks_at_both(run: Path) -> None:
    recipe = Recipe.read(run / "recipe.json")
    assert examine(recipe).trainable
    path = run.parent / "odd.tsv"
    path.write_text("amber\t\tsame\nbirch\tcedar\tsame\nbirch\tcedar\tother\n", "utf-8")
    odd = recipe.model_copy(update={"data": recipe.data.model_copy(update={"train": (str(path),)})})
    told = [finding.message for finding in examine(odd).findings]
    assert any("whose text and second also occur under another label" in message for message in told)
    assert any("empty" in message and "second" in message for message in told)


def test_over_http(run: Path, tmp_path: Path) -> None:
    with served([run], tmp_path / "stderr") as running:
        reply = running.post("/v1/classify_pair", text="amber birch", second=["amber", "cedar"])
        pairs = [{"text": "amber birch", "second": second} for second in ("amber", "cedar")]
        assert reply.json["answers"] == [one.to_json() for one in regard.load(run).predict(pairs)]
        assert "attention" in running.post("/v1/explain", text="amber", second="birch").json["answer"]
        assert running.post("/v1/classify_pair", text="amber").status == 422
