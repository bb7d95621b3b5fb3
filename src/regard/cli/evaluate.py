from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from regard.cli import console
from regard.cli.arguments import AsJson, Columns, Others, Run, columns, files_and_settings
from regard.cli.baseline import show
from regard.cli.compare import SURE, as_json_of, compare, refuse_strangers
from regard.errors import DataError, RunError
from regard.text.sanitize import printable

HELD_OUT = "test, held out of the training data"

if TYPE_CHECKING:
    from regard import Evaluation, Trained
    from regard.baselines.standing import Standing
    from regard.files.row import Row


MOST_KINDS = 40
"""Rows of the table of kinds."""


def evaluate(
    run: Run,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN_B|FILES|KEY=VALUE",
            help="Another run, to be compared with the first on the same rows; data laid out as for "
            "training, by default the recipe's test split; and settings of the search, such as beam=5.",
        ),
    ] = None,
    where: Columns = None,
    others: Others = None,
    with_baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Also score simple methods on the same rows.")
    ] = True,
    json: AsJson = False,
) -> None:
    """Score a model on data with known answers, or compare two."""
    import regard

    given, search = files_and_settings(arguments or ())
    rival, files = _rival_and_files(run, given)
    as_trained = not (files or search or others)
    models = {str(run): regard.load(run, *(others or ()))}
    if rival is not None:
        models[str(rival)] = regard.load(rival)
        refuse_strangers(models)
    held_out = None if files else _held_out(run)
    files = files or ([HELD_OUT] if held_out is not None else _test_files(run, models[str(run)]))
    found = {}
    for name, trained in models.items():
        with console.progress(f"scoring {name}", None) as tick:
            if held_out is None:
                found[name] = trained.evaluate(files, columns(where), tick=tick, **search)
            else:
                found[name] = trained.score(held_out, HELD_OUT, tick=tick, **search)
    if rival is not None:
        compare(files, found, as_json=json)
        return
    trained, scored = models[str(run)], found[str(run)]
    baselines = _baselines(run, trained, scored, files, as_trained=as_trained) if with_baselines else None
    if json:
        beside = {"baselines": baselines.model_dump(mode="json")} if baselines else {}
        console.write_json({"files": files} | as_json_of(scored) | beside)
    else:
        _show(files, scored)
        if baselines:
            show(baselines)


def _baselines(
    run: Path, trained: "Trained", scored: "Evaluation", files: list[str], *, as_trained: bool
) -> "Standing | None":
    """Scores of simple methods on the same rows, as training has measured it or anew; a folder without a
    recipe does not say what to learn from.
    """
    from regard.baselines.standing import Standing
    from regard.recipe import Recipe
    from regard.runs.baselines import of_corpus, suitable
    from regard.runs.corpus import Corpus

    measured = Standing.model_validate(trained.metrics.get("baselines", {}))
    if as_trained and measured.split == "test":
        return measured
    if trained.data is None or not suitable(trained.task):
        return None
    recipe = Recipe.read(run / "recipe.json")
    with console.ERR.status("measuring the baselines …"):
        try:
            found = of_corpus(Corpus(recipe, Path()), trained.task, scored.examples, ", ".join(files))
        except DataError as fault:
            return Standing(notes=(f"baselines: not measured ({fault})",))
    return found.beside(scored.tally, recipe)


def _rival_and_files(run: Path, arguments: list[str]) -> tuple[Path | None, list[str]]:
    """Which of the names is another run; the others are data, perhaps folders of files."""
    from regard.files.lines import expand

    runs = [Path(name) for name in arguments if _is_rival(name)]
    if len(runs) > 1:
        raise RunError(f"{runs[1]}: two runs are compared at a time; leave out all others")
    if run in runs:
        raise RunError(f"{run}: a run is compared with another, not with itself")
    files = [name for name in arguments if not _is_rival(name)]
    for name in files:
        if not Path(name).suffix and not any(Path(file).exists() for file in expand(name)):
            raise RunError(f"{name}: no such run or file")
    return next(iter(runs), None), files


def _is_rival(name: str) -> bool:
    """True if it is a run or a model; a folder of data ends with a slash, and has no recipe."""
    folder = Path(name)
    held = any((folder / file).is_file() for file in ("recipe.json", "config.json"))
    return folder.is_dir() and (held or not name.endswith("/"))


def _show(files: list[str], evaluation: "Evaluation") -> None:
    console.line(f"{', '.join(files)}: {evaluation.n_examples:,} rows")
    console.scores({"": evaluation.metrics}, {"": evaluation.intervals})
    if evaluation.intervals:
        console.line(SURE, "dim")
    for signature, names in groupby(evaluation.signatures, evaluation.signatures.__getitem__):
        console.line(f"{', '.join(names)}: {signature}", "dim")
    if evaluation.by_kind:
        console.OUT.print()
        console.table(_kinds(evaluation.by_kind))
        if len(evaluation.by_kind) > MOST_KINDS:
            console.line(
                f"… and {len(evaluation.by_kind) - MOST_KINDS:,} more; --json has all of them", "dim"
            )


def _kinds(by_kind: dict[str, dict[str, float]]) -> Table:
    """A row for each kind: `LOC  f1 91.20  precision …  n 120`."""
    names = list(next(iter(by_kind.values())))
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    for kind, scores in islice(by_kind.items(), MOST_KINDS):
        cells = (f"{scores[name]:,.0f}" if name == "n" else f"{scores[name]:.2f}" for name in names)
        table.add_row(Text(printable(kind)), *cells)
    return table


def _held_out(run: Path) -> "list[Row] | None":
    """The rows of the training data that are held out for the test, where the task says which."""
    from regard.recipe import Recipe
    from regard.runs.corpus import Corpus

    if not (run / "recipe.json").is_file():
        return None
    rows = Corpus(Recipe.read(run / "recipe.json"), Path()).held_out_test()
    return None if rows is None else list(rows)


def _test_files(run: Path, trained: "Trained") -> list[str]:
    if trained.data is None:
        raise RunError(f"{run}: a model folder names no test data; say which: regard eval {run} FILES")
    if trained.data.test is None:
        raise RunError(f"{run}: its recipe has no test data; say which: regard eval {run} FILES")
    return list(trained.data.test)
