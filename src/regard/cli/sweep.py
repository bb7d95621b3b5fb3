from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from regard.cli import console
from regard.cli.arguments import AsJson, RecipeFile
from regard.errors import RecipeError
from regard.text.sanitize import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.recipe import Recipe
    from regard.runs.search.page import Cell
    from regard.runs.search.trials import Outcome, Sweep

SHOWN = 20


def sweep(
    recipe: RecipeFile,
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE,VALUE|KEY=LOW..HIGH",
            help="Settings to try, such as train.lr=1e-3,3e-3; one value alone holds for all trials.",
        ),
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Draw so many mixtures instead of trying every one."),
    ] = None,
    halving: Annotated[
        bool,
        typer.Option("--halving", help="Train all for a short time, the best third longer, and so on."),
    ] = False,
    seeds: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Train each mixture with so many seeds; means are compared."),
    ] = 1,
    budget: Annotated[
        str | None, typer.Option(help="Begin no trial that would not fit: 30m, 2h or 90s of training.")
    ] = None,
    draw_seed: Annotated[int, typer.Option(metavar="N", help="Of what --random draws.")] = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="For runs, table and page; RUN-sweep by default.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Try settings, and rank them by their score on the validation data.

    The test data are not looked at. Stop it at any time: the same command goes on where it was.
    """
    from regard.recipe import Recipe
    from regard.runs.search import trials as search
    from regard.runs.search.space import axis, mixtures

    axes = [axis(text) for text in settings or ()]
    varied = [one for one in axes if not isinstance(one.values, tuple) or len(one.values) > 1]
    fixed = [
        f"{one.key}={one.values[0]}" for one in axes if isinstance(one.values, tuple) and one not in varied
    ]
    if not varied and seeds == 1:
        raise RecipeError("nothing to try; give settings with several values, such as train.lr=1e-3,3e-3")
    seconds = None if budget is None else search.seconds(budget)
    begun = Recipe.read(recipe, fixed)
    if halving:
        search.refuse_halving(begun)
    folder = out or Path(f"{begun.run}-sweep")
    keys = [one.key for one in varied]
    trials = search.trials(recipe, fixed, keys, mixtures(varied, random, draw_seed), seeds, folder)
    metric = search.metric_of(begun)

    def tell(outcome: "Outcome") -> None:
        said = search.described(dict(zip(keys, outcome.trial.values, strict=True))) or "as it is"
        console.line(f"{metric.name} {_scored(outcome)}  {said}", console=console.ERR)
        _write(folder, keys, tried)

    tried = search.Sweep(metric, _train, seconds, tell)
    (tried.halve if halving else tried.run)(trials)
    if tried.left_out:
        console.line(f"the budget left {len(tried.left_out):,} trainings out", console=console.ERR)
    if json:
        console.write_json({"metric": metric.name, "trials": _plain(keys, tried.ranked)})
        return
    console.table(_table(keys, metric.name, tried.ranked))
    console.line(f"wrote {folder}/sweep.html and {folder}/{search.NAME}", "dim")
    best = search.described(dict(zip(keys, tried.ranked[0].trial.values, strict=True)))
    chosen = " ".join([*fixed, best]).strip()
    console.line("train the best once more, and score the test data once:", "dim")
    console.line(f"  regard train {recipe} {chosen}".rstrip())


def _train(recipe: "Recipe") -> None:
    """Train a trial; one that was stopped goes on, and one that is finished is not trained again."""
    import regard
    from regard.training.stopping import Interrupted

    with console.ERR.status(f"training {recipe.run} …"):
        try:
            regard.train(recipe, quiet=True)
        except Interrupted as stopped:
            console.line("interrupted; the same command goes on from here", console=console.ERR)
            raise typer.Exit(128 + stopped.signum) from None


def _scored(outcome: "Outcome") -> str:
    mean = f"{outcome.mean:.2f}"
    return mean if len(outcome.scores) == 1 else f"{mean} ± {outcome.deviation:.2f}"


def _plain(keys: "Sequence[str]", ranked: "Sequence[Outcome]") -> "list[dict[str, object]]":
    return [
        {
            "settings": dict(zip(keys, one.trial.values, strict=True)),
            "scores": list(one.scores),
            "mean": one.mean,
            "rung": one.rung,
            "minutes": one.minutes,
        }
        for one in ranked
    ]


def _table(keys: "Sequence[str]", metric: str, ranked: "Sequence[Outcome]") -> Table:
    """The best trials, a row each."""
    has_rungs = any(one.rung for one in ranked)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in (metric, *(["rung"] if has_rungs else []), "minutes"):
        table.add_column(name, justify="right")
    for key in keys:
        table.add_column(Text(printable(key)))
    for one in ranked[:SHOWN]:
        rung = [str(one.rung)] if has_rungs else []
        values = (Text(printable(value)) for value in one.trial.values)
        table.add_row(_scored(one), *rung, f"{one.minutes:.1f}", *values)
    return table


def _write(folder: Path, keys: "Sequence[str]", tried: "Sweep") -> None:
    """The table as JSON, and the page."""
    from regard.runs.search.page import Cell, table, write_page
    from regard.runs.search.parallel import parallel
    from regard.runs.search.trials import NAME, write

    metric, ranked = tried.metric, tried.ranked
    write(folder / NAME, keys, metric, ranked)
    rows = [[*map(_cell, one.trial.values), Cell(_scored(one), one.mean)] for one in ranked]
    names = [*keys, f"{metric.name} (valid)"]
    more = [
        [*row, Cell(str(one.rung), one.rung), Cell(f"{one.minutes:.1f}", one.minutes)]
        for row, one in zip(rows, ranked, strict=True)
    ]
    picture = parallel(names, rows)
    listed = table([*names, "rung", "minutes"], more)
    best = "the higher, the better" if metric.higher else "the lower, the better"
    counted = f"{len(ranked)} trials, ranked by {metric.name} on the validation data ({best})"
    note = f"<p>{counted}; test data were not used.</p>"
    write_page(folder / "sweep.html", folder.name, f'{note}{picture}<div class="wide">{listed}</div>')


def _cell(value: str) -> "Cell":
    from regard.runs.search.page import Cell

    try:
        return Cell(value, float(value))
    except ValueError:
        return Cell(value)
