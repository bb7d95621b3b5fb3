"""Files as people have them: `init` reads them, or says in one sentence what to do."""

from pathlib import Path

import pytest

from regard.recipe import Recipe
from small_runs import Call, write_pairs

ASKED = ("--column", "source=2", "--column", "target=1")


@pytest.mark.parametrize("name", ["test.tsv", "dev.tsv", "valid.tsv"])
def test_a_lone_file_is_for_training_whatever_its_name(call: Call, home: Path, name: str) -> None:
    write_pairs(home / name, 40)
    shown = call("init", name, *ASKED)
    assert shown.exit_code == 0, shown.stderr
    assert f"{name}: for training, as there are no other files." in shown.stdout
    data = Recipe.read(home / "recipe.toml").data
    assert (data.train, data.valid, data.test) == ((name,), None, None)


def test_the_split_of_a_file_can_be_given(call: Call, home: Path) -> None:
    for name in ("a.tsv", "train_b.tsv", "c.tsv"):
        write_pairs(home / name, 40)
    shown = call("init", "--train", "a.tsv", "--valid", "train_b.tsv", "--test", "c.tsv", *ASKED)
    assert shown.exit_code == 0, shown.stderr
    assert "train_b.tsv: for validation, as given." in shown.stdout
    data = Recipe.read(home / "recipe.toml").data
    assert (data.train, data.valid, data.test) == (("a.tsv",), ("train_b.tsv",), ("c.tsv",))


@pytest.mark.parametrize("verb", ["init", "predict"])
@pytest.mark.parametrize("name", ["data.xlsx", "data.xls", "data.ods"])
def test_how_to_save_a_spreadsheet_is_said(
    call: Call, home: Path, classifier: Path, verb: str, name: str
) -> None:
    (home / name).write_bytes(b"PK\x03\x04")
    result = call("init", name) if verb == "init" else call("predict", classifier, "--file", name)
    assert result.exit_code == 2
    assert f"{name}: spreadsheets are not read; save the sheet as CSV" in result.stderr


def test_two_recipes_of_the_same_files_have_two_runs(call: Call, home: Path) -> None:
    write_pairs(home / "train.tsv", 40)
    for out in ("one.toml", "two.toml", "three.toml"):
        assert call("init", "train.tsv", *ASKED, "--out", out).exit_code == 0
    runs = [Recipe.read(home / out).run for out in ("one.toml", "two.toml", "three.toml")]
    assert runs == ["runs/translate", "runs/translate-2", "runs/translate-3"]


@pytest.mark.parametrize("given", [("a.txt", "b.txt", "c.txt"), ("books",)])
def test_texts_that_do_not_belong_together_are_one_text_after_the_other(
    call: Call, home: Path, given: tuple[str, ...]
) -> None:
    folder = home / "books" if given == ("books",) else home
    folder.mkdir(exist_ok=True)
    for n, name in enumerate(("a.txt", "b.txt", "c.txt"), 1):
        (folder / name).write_text("amber birch cedar delta\n" * 30 * n, "utf-8")
    shown = call("init", *given)
    assert shown.exit_code == 0, shown.stderr
    recipe = Recipe.read(home / "recipe.toml")
    assert recipe.task.kind == "language_model"
    assert [Path(file).name for file in recipe.data.train] == ["a.txt", "b.txt", "c.txt"]
    small = ("model.d_model=8", "model.n_heads=2", "model.d_ff=8", "task.decode.max_length=3")
    trained = call("train", "recipe.toml", "train.max_steps=1", "train.warmup=0", "train.threads=1", *small)
    assert trained.exit_code == 0, trained.stderr


def test_a_line_too_few_is_still_a_fault(call: Call, home: Path) -> None:
    (home / "train.en").write_text("amber\n" * 30, "utf-8")
    (home / "train.zh").write_text("山\n" * 29, "utf-8")
    result = call("init", "train.en", "train.zh")
    assert result.exit_code == 2
    assert "train.en:30 is the first without a partner" in result.stderr
