from pathlib import Path
from typing import Annotated

import typer

from regard.cli import console
from regard.cli.arguments import Overrides, RecipeFile


def train(
    recipe: RecipeFile,
    overrides: Overrides = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest checkpoint of the run.")
    ] = False,
) -> None:
    """Train a recipe to a scored model in a run folder.

    Ctrl-C stops at any time; --resume goes on from the last validation.
    """
    import regard

    described = regard.Recipe.read(recipe, overrides or ())
    try:
        trained = regard.train(described, resume=resume)
    except KeyboardInterrupt:
        console.line(_how_to_go_on(Path(described.run)), console=console.ERR)
        raise typer.Exit(130) from None
    console.scores(trained.metrics["scores"])
    console.OUT.print()
    next_commands(described.run)


def next_commands(run: str, text: str = "your text") -> None:
    console.line("now try:", "dim")
    for verb in ("predict", "explain"):
        console.line(f'  regard {verb} {run} "{text}"')


def _how_to_go_on(run: Path) -> str:
    if any(run.glob("checkpoints/step-*")):
        return f"interrupted; go on with: regard train {run / 'recipe.json'} --resume"
    return f"interrupted before the first validation, so nothing was kept; delete {run} before training again"
