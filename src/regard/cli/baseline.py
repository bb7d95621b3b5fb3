from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli import console
from regard.cli.arguments import AsJson, Overrides, RecipeFile

if TYPE_CHECKING:
    from regard.baselines.standing import Standing


def baseline(recipe: RecipeFile, overrides: Overrides = None, json: AsJson = False) -> None:
    """Score simple methods on a recipe's data: what its model has to beat.

    They learn in seconds, no model is trained and nothing is written. The rows are those of the test split,
    or of the validation split where there is none.
    """
    from regard.recipe import Recipe
    from regard.runs.baselines import of_recipe

    described = Recipe.read(recipe, overrides or ())
    with console.ERR.status("reading the data …") as status:
        found = of_recipe(described, Path(), lambda name: status.update(f"measuring {name} …")).alone
    if json:
        console.write_json(found.model_dump(mode="json"))
    else:
        show(found)


def show(found: "Standing") -> None:
    """Print what baselines scored, and how a model stands beside the best."""
    if found.scores:
        of = f" of {found.of:,}" if found.of > found.learnt_from else ""
        console.line(
            f"baselines on {found.split}, learnt from {found.learnt_from:,}{of} training rows:", "dim"
        )
        console.scores(found.scores, found.intervals)
    for note in found.notes:
        console.line(note, "dim")
    if found.verdict:
        console.line(found.verdict, "" if found.is_beaten else "bold yellow")
