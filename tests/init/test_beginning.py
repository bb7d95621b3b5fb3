"""`regard init FILES --from FOLDER`: a recipe that begins with a trained model, which `train` accepts."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import berts
import gpt2s
from regard.cli import app
from regard.recipe import Recipe

N = 45
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove")
SMALL = ("train.max_steps=2", "train.max_epochs=1", "train.threads=1")


def said(n: int, words: int = 5) -> str:
    return " ".join(WORDS[(n * n + word * (n + 1)) % 7] for word in range(words))


def lines(row: Callable[[int], str]) -> str:
    return "".join(f"{row(n)}\n" for n in range(N))


FILES = {
    "classify": ("train.tsv", lines(lambda n: f"{said(n)}\t{('good', 'bad')[n % 2]}")),
    "classify_pair": ("train.tsv", lines(lambda n: f"{said(n)}\t{said(n + 3)}\t{('yes', 'no')[n % 2]}")),
    "multilabel": ("train.tsv", lines(lambda n: f"{said(n)}\t{'|'.join('abc'[: n % 4])}")),
    "tag": ("train.conll", lines(lambda n: f"{WORDS[n % 7]} B-X\nlives O\n")),
    "relation": ("a.tsv", lines(lambda n: f"<e1>{WORDS[n % 7]}</e1> has <e2>{n}</e2>\t{'xyz'[n % 3]}")),
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REGARD_MODELS", raising=False)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


@pytest.fixture
def bert(home: Path) -> str:
    folder = home / "models" / "small"
    folder.mkdir(parents=True)
    berts.written(folder)
    return "models/small"


@pytest.mark.parametrize("task", FILES)
def test_training_accepts_what_begins_with_a_bert(task: str, bert: str) -> None:
    file, content = FILES[task]
    Path(file).write_text(content, "utf-8")
    made = call("init", file, "--from", bert)
    assert made.exit_code == 0, made.output
    recipe = Recipe.read("recipe.toml")
    assert recipe.task.kind == task
    assert (recipe.model.init_from, recipe.train.schedule) == (bert, "linear")  # type: ignore[union-attr]
    trained = call("train", "recipe.toml", *SMALL)
    assert trained.exit_code == 0, trained.output


def test_a_language_model_begins_with_a_gpt2(home: Path) -> None:
    (home / "gpt2").mkdir()
    gpt2s.written(home / "gpt2")
    Path("book.txt").write_text(lines(said), "utf-8")
    made = call("init", "book.txt", "--from", "gpt2")
    assert made.exit_code == 0, made.output
    assert Recipe.read("recipe.toml").task.max_length < 31
    assert call("train", "recipe.toml", *SMALL, "task.decode.max_length=3").exit_code == 0


def test_the_only_folder_nearby_is_proposed_and_taken(bert: str) -> None:
    Path("train.tsv").write_text(FILES["classify"][1], "utf-8")
    assert f"--from {bert} begins with it" in call("init", "train.tsv", "--out", "scratch.toml").output
    assert Recipe.read("scratch.toml").model.init_from is None  # type: ignore[union-attr]
    assert call("init", "train.tsv", "--from", "auto").exit_code == 0
    assert Recipe.read("recipe.toml").model.init_from == bert  # type: ignore[union-attr]


def test_two_folders_nearby_are_named(home: Path, bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "other").mkdir()
    berts.written(home / "other")
    monkeypatch.setenv("REGARD_MODELS", str(home / "other"))
    Path("train.tsv").write_text(FILES["classify"][1], "utf-8")
    made = call("init", "train.tsv", "--from", "auto")
    assert (made.exit_code, Path("recipe.toml").exists()) == (2, False)
    assert f"{home / 'other'} and {bert} both fit; give one: --from {home / 'other'}" in made.output


@pytest.mark.parametrize(
    ("content", "folder", "message"),
    [
        (FILES["classify"][1], "auto", "--from auto: no trained model that fits is in models/"),
        (FILES["classify"][1], "nowhere", "nowhere: no such folder; give a run, or a BERT"),
        (
            lines(lambda n: f"{said(n)}\t山水木火{n}"),
            "auto",
            "a transformer of the task translate cannot begin",
        ),
    ],
)
def test_what_cannot_be_begun_with_is_refused(content: str, folder: str, message: str) -> None:
    Path("train.tsv").write_text(content, "utf-8")
    made = call("init", "train.tsv", "--from", folder)
    assert (made.exit_code, Path("recipe.toml").exists()) == (2, False)
    assert message in made.output
