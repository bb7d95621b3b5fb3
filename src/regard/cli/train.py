from typing import Annotated

import typer

from regard.cli import console
from regard.cli.arguments import Overrides, RecipeFile
from regard.cli.baseline import show


def train(
    recipe: RecipeFile,
    overrides: Overrides = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over; the run that stands there gets another name.")
    ] = False,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes", help="Go on although recipe, data or software changed; it is written down."
        ),
    ] = False,
) -> None:
    """Train a recipe to a scored model in a run folder.

    Stop it at any time (Ctrl-C, a signal, a power cut): the same command goes on where it was.
    """
    import regard
    from regard.baselines.standing import Standing
    from regard.tasks import TASKS
    from regard.tasks.task import typed
    from regard.training.ranks import is_first
    from regard.training.stopping import Interrupted

    described = regard.Recipe.read(recipe, overrides or ())
    try:
        trained = regard.train(described, fresh=fresh, accept_changes=accept_changes)
    except Interrupted as stopped:
        if is_first():
            console.line("interrupted; the same command goes on from here", console=console.ERR)
        raise typer.Exit(128 + stopped.signum) from None
    if not is_first():
        return
    console.scores(trained.metrics["scores"], trained.metrics.get("intervals"))
    show(Standing.model_validate(trained.metrics.get("baselines", {})))
    console.OUT.print()
    next_commands(described.run, typed(TASKS[described.task.kind], described.task))


def next_commands(run: str, asked: str) -> None:
    console.line("now try:", "dim")
    for verb in ("predict", "explain"):
        console.line(f"  regard {verb} {run} {asked}")
