"""A recipe that lies elsewhere: its files are looked for in the current folder, then beside it."""

from pathlib import Path

import pytest

from regard.recipe import DataConfig, Recipe
from small_runs import CLASSIFY, Call, write_recipe


def test_files_beside_the_recipe_are_found(call: Call, home: Path) -> None:
    (home / "project").mkdir()
    write_recipe(home / "project", CLASSIFY)
    recipe = home / "project" / "recipe.toml"
    text = recipe.read_text("utf-8").replace(f"{home}/project/", "")
    recipe.write_text(text, "utf-8")
    assert Recipe.read("project/recipe.toml").data.train == ("project/texts.csv",)
    result = call("train", "project/recipe.toml")
    assert result.exit_code == 0, result.stderr
    assert (home / "run" / "model" / "config.json").is_file(), "the run is in the current folder"


@pytest.mark.parametrize("name", ["no-*.csv", "x" * 300, "a\0b", "/nowhere.csv", "regard:demo/train.tsv"])
def test_names_that_are_nowhere_stay_as_they_are(home: Path, name: str) -> None:
    data = DataConfig(train=(name,))
    assert data.beside(home) == data


def test_files_of_the_current_folder_come_first(home: Path) -> None:
    (home / "project").mkdir()
    write_recipe(home / "project", CLASSIFY)
    recipe = home / "project" / "recipe.toml"
    recipe.write_text(recipe.read_text("utf-8").replace(f"{home}/project/", ""), "utf-8")
    (home / "texts.csv").write_text("text,label\n", "utf-8")
    assert Recipe.read("project/recipe.toml").data.train == ("texts.csv",)
    (home / "texts.csv").unlink()
    (home / "project" / "texts.csv").unlink()
    assert Recipe.read("project/recipe.toml").data.train == ("texts.csv",), "the fault names what was written"
