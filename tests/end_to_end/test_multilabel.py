"""Several labels a text, from somebody's file to a served answer."""

import json
import random
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import regard
from regard.check.examine import examine
from regard.cli import app
from regard.errors import DataError, RunError
from regard.init.detect import detect
from regard.recipe import Recipe
from tiny import WORDS

MEANS = {"amber": "warm", "birch": "tall", "ember": "warm", "fjord": "wet", "inlet": "wet"}


def marked(folder: Path, n_rows: int, name: str = "train", separator: str = "|", header: str = "") -> str:
    """Every word that means something brings its label."""
    rng = random.Random(name)
    lines = [header] if header else []
    for _ in range(n_rows):
        words = rng.choices(WORDS, k=rng.randint(1, 6))
        labels = sorted({MEANS[word] for word in words if word in MEANS})
        lines.append(f"{' '.join(words)}\t{separator.join(labels)}")
    path = folder / f"{name}.tsv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def call(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained with the recipe that `regard init` writes, but for its size."""
    folder = tmp_path_factory.mktemp("multilabel")
    files = [marked(folder, n, name) for name, n in (("train", 400), ("valid", 60), ("test", 71))]
    assert call("init", *files, "--out", folder / "recipe.toml").exit_code == 0
    encoder = '{kind="words", d_embed=16, dropout=0.0}'
    settings = [f"run={folder / 'run'}", f"model.encoder={encoder}", "model.dropout=0"]
    settings += ["train.max_epochs=40", "train.lr=0.03", "train.warmup=5", "train.threads=1"]
    regard.train(folder / "recipe.toml", *settings, "task.tokenizer.kind=word", quiet=True)
    return folder / "run"


@pytest.mark.parametrize("separator", ["|", ";", ","])
@pytest.mark.parametrize("header", ["", "text\tlabel", "sentence\tlabels"])
def test_init_recognises_several_labels(tmp_path: Path, separator: str, header: str) -> None:
    path = marked(tmp_path, 200, separator=separator, header=header)
    assert detect([path]).task == "multilabel"
    assert call("init", path, "--out", tmp_path / "recipe.toml").exit_code == 0
    written = tomllib.loads((tmp_path / "recipe.toml").read_text("utf-8"))
    assert (written["task"]["kind"], written["task"]["separator"]) == ("multilabel", separator)


def test_init_recognises_few_combinations_among_texts_without_labels(tmp_path: Path) -> None:
    cells = ["joy", "", "love", "", "fear", "", "joy", ""] * 12 + ["joy,love", "love,fear", "joy,fear"]
    lines = [f"film {n} of some length\t{cell}" for n, cell in enumerate(cells)]
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "\n".join(lines) + "\n", "utf-8")
    assert detect([str(tmp_path / "train.tsv")]).task == "multilabel"


def test_init_leaves_single_labels_alone(tmp_path: Path) -> None:
    """A comma inside a label is no separator where its parts never stand elsewhere."""
    lines = [
        f"film {n} is {'good' if n % 2 else 'bad'}\t{'drama, slow' if n % 2 else 'fun'}" for n in range(90)
    ]
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "\n".join(lines) + "\n", "utf-8")
    assert detect([str(tmp_path / "train.tsv")]).task == "classify"


def test_it_learns_and_is_scored(run: Path) -> None:
    scores = json.loads((run / "model" / "metrics.json").read_text("utf-8"))
    assert scores["scores"]["test"]["micro_f1"] > 95
    assert set(scores["intervals"]["test"]) == {"micro_f1", "macro_f1", "accuracy"}
    found = json.loads(call("eval", run, "--json").stdout)
    assert found["scores"] == pytest.approx(scores["scores"]["test"], rel=1e-3)
    strict = json.loads(call("eval", run, "threshold=0.999", "--json").stdout)
    assert strict["scores"]["micro_f1"] < found["scores"]["micro_f1"]


def test_answers(run: Path) -> None:
    trained = regard.load(run)
    answer = trained.predict("amber fjord cedar")
    assert (answer.text, answer.labels) == ("warm|wet", ("warm", "wet"))
    assert trained.predict("cedar delta").labels == ()
    told = json.loads(call("predict", run, "birch", "--json").stdout)
    assert (told["text"], told["labels"]) == ("tall", ["tall"])
    assert set(told["probabilities"]) == {"tall", "warm", "wet"}
    assert call("predict", run, "birch cedar", "--set", "threshold=1.5").exit_code == 2


def test_an_explanation_names_the_labels(run: Path, tmp_path: Path) -> None:
    trained = regard.load(run)
    found = trained.explain("cedar amber delta")
    assert found.output == "warm"
    with pytest.raises(RunError, match="ct2: a classifier has no counterpart in CTranslate2; export to onnx"):
        trained.export(tmp_path / "there", "ct2", ["amber"])


def test_check_counts_labels(run: Path, tmp_path: Path) -> None:
    recipe = Recipe.read(run / "recipe.json")
    report = examine(recipe)
    (note,) = [finding for finding in report.findings if finding.kind == "labels"]
    assert note.message.startswith("train: 3 labels, ")
    assert report.trainable
    strange = recipe.model_copy(update={"data": recipe.data.model_copy(update={"test": (odd(tmp_path),)})})
    (unseen,) = [finding for finding in examine(strange).findings if finding.severity == "error"]
    assert unseen.message == "test: 1 row with a label that does not occur in train ('cold')"
    with pytest.raises(DataError, match="label 'cold' does not occur in the training data"):
        regard.load(run).evaluate(odd(tmp_path))


def odd(folder: Path) -> str:
    path = folder / "odd.tsv"
    path.write_text("amber\twarm\nbirch\ttall|cold\n", "utf-8")
    return str(path)
