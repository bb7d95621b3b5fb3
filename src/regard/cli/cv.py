from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated

import typer
from rich.table import Table

from regard.cli import console
from regard.cli.arguments import AsJson, Overrides, RecipeFile


def cv(
    recipe: RecipeFile,
    overrides: Overrides = None,
    folds: Annotated[
        int, typer.Option(min=2, max=100, metavar="N", help="Parts that each are the test once.")
    ] = 5,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="For the runs; RUN-cv by default.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Train a recipe several times, each time tested on another part of its training data.

    Validation and test files of the recipe are not read. Stop it at any time: the same command goes on.
    """
    import regard
    from regard.recipe import Recipe
    from regard.runs.search.trials import metric_of
    from regard.runs.store import read_metrics
    from regard.training.stopping import Interrupted

    begun = Recipe.read(recipe, overrides or ())
    folder, metric, found = out or Path(f"{begun.run}-cv"), metric_of(begun), []
    for fold in range(1, folds + 1):
        content = begun.model_dump(mode="json", exclude_unset=True)
        content["run"] = str(folder / f"{fold}of{folds}")
        content["data"] |= {"valid": None, "test": None, "fold": f"{fold}/{folds}"}
        part = Recipe.parse(content, str(recipe))
        with console.ERR.status(f"training fold {fold} of {folds} …"):
            try:
                regard.train(part, quiet=True)
            except Interrupted as stopped:
                console.line("interrupted; the same command goes on from here", console=console.ERR)
                raise typer.Exit(128 + stopped.signum) from None
        found.append(read_metrics(Path(part.run)))
    scores = [one["scores"]["test"][metric.name] for one in found]
    if json:
        console.write_json(
            {"metric": metric.name, "folds": scores, "mean": fmean(scores), "deviation": stdev(scores)}
        )
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("fold", metric.name, "best baseline", "minutes"):
        table.add_column(name, justify="right")
    for fold, one in enumerate(found, 1):
        standing = one.get("baselines", {})
        best = standing.get("scores", {}).get(standing.get("best") or "", {}).get(metric.name)
        interval = one.get("intervals", {}).get("test", {}).get(metric.name)
        cells = (
            console.score(metric.name, scores[fold - 1], interval),
            "" if best is None else f"{best:.2f}",
        )
        table.add_row(f"{fold}/{folds}", *cells, f"{one.get('minutes', 0):.1f}")
    console.table(table)
    console.line(
        f"{metric.name} {fmean(scores):.2f} ± {stdev(scores):.2f} (mean and deviation of {folds} folds)"
    )
