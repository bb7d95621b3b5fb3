import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import console
from regard.cli.arguments import Overrides
from regard.cli.explain import show
from regard.cli.files import free
from regard.cli.train import next_commands

if TYPE_CHECKING:
    from regard.files.row import Row
    from regard.recipe import Recipe

RECIPE = Path(__file__).parents[1] / "samples" / "demo.toml"


def demo(
    overrides: Overrides = None,
    run: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The run folder; by default runs/demo.", show_default=False),
    ] = None,
) -> None:
    """Train a translator on shipped data, score it, look inside it.

    Chinese → English, in less than ten minutes on two cores. A run folder that exists is kept: the next demo
    goes to runs/demo-2, and so on.
    """
    import regard
    from regard.recipe import Recipe

    folder = run or free("runs/demo")
    recipe = Recipe.read(RECIPE, [*(overrides or ()), f"run={json.dumps(str(folder))}"])
    console.line("Chinese → English, from 27,153 sentence pairs of tatoeba.org (CC BY 2.0 FR)", "bold")
    trained = regard.train(recipe)
    console.OUT.print()
    console.scores(trained.metrics["scores"], trained.metrics.get("intervals"))
    console.OUT.print()
    sentences = list(_sentences(recipe))
    for row in sentences:
        console.facts(
            [
                ("Chinese", row.cells["source"]),
                ("regard", trained.predict(row.cells["source"]).text),
                ("human", row.cells["target"]),
            ]
        )
        console.OUT.print()
    show(trained.explain(sentences[1].cells["source"]), folder / "attention.html", folder / "attention.svg")
    console.OUT.print()
    next_commands(str(folder), '"他每天早上喝一杯咖啡。"')


def _sentences(recipe: "Recipe") -> Iterator["Row"]:
    """A short, a middling and a long one of the test split, which is sorted by length: the quartiles."""
    from regard.files.read import read_rows

    rows = list(read_rows(recipe.data.test or (), recipe.columns()))
    return (rows[len(rows) * quarter // 4] for quarter in (1, 2, 3))
