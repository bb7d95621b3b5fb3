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
        standing = of_recipe(described, Path(), lambda name: status.update(f"measuring {name} …")).alone
    if json:
        console.write_json(standing.model_dump(mode="json"))
    else:
        show(standing)


def show(standing: "Standing") -> None:
    """Print what baselines scored, and how a model stands beside the best."""
    if standing.scores:
        of = f" of {standing.of:,}" if standing.of > standing.learnt_from else ""
        console.line(
            f"baselines on {standing.split}, learnt from {standing.learnt_from:,}{of} training rows:", "dim"
        )
        console.scores(standing.scores, standing.intervals)
    for note in standing.notes:
        console.line(note, "dim")
    if standing.verdict:
        console.line(standing.verdict, "" if standing.is_beaten else "bold yellow")
