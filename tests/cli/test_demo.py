from pathlib import Path

from regard.cli.demo import RECIPE
from regard.recipe import Recipe
from small_runs import Call, write_recipe

SMALL = ["model.d_model=8", "model.n_heads=2", "model.d_ff=8", "train.max_steps=1", "train.threads=1"]


def test_its_recipe_ends_by_itself() -> None:
    recipe = Recipe.read(RECIPE)
    assert recipe.train.max_minutes is not None
    assert recipe.train.max_minutes <= 8
    assert recipe.data.test == ("regard:tatoeba_cmn_eng/test.tsv.gz",)


def test_from_data_to_picture(call: Call, home: Path) -> None:
    """With a model and data of no size; the real ones take five minutes."""
    write_recipe(home)
    data = [f"data.{split}={split}.tsv" for split in ("train", "valid", "test")]
    result = call("demo", *SMALL, *data)
    assert result.exit_code == 0, result.stderr
    assert [line.split()[:2] for line in result.stdout.splitlines() if line.startswith("test")] == [
        ["test", "loss"]
    ]
    for name in ("Chinese  ", "regard   ", "human    "):
        assert sum(line.startswith(name) for line in result.stdout.splitlines()) == 3
    assert " ← " in result.stdout
    page = home / "runs" / "demo" / "attention.html"
    assert page.is_file()
    assert page.with_suffix(".svg").is_file()
    assert "page     runs/demo/attention.html" in result.stdout
    again = call("demo", *SMALL, *data)
    assert "runs/demo-2/attention.html" in again.stdout


def test_a_folder_that_is_named_is_not_reused(call: Call, home: Path) -> None:
    (home / "taken").mkdir()
    (home / "taken" / "x").touch()
    result = call("demo", "--run", "taken", *SMALL)
    assert result.exit_code == 2
    assert "taken: already exists and is not a run (it has x)" in result.stderr
