from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from regard.cli import console
from regard.cli.arguments import AsJson, Columns, Others, Run, columns, files_and_settings
from regard.cli.compare import SURE, compare, refuse_strangers, told
from regard.errors import RunError
from regard.text.plain import printable

if TYPE_CHECKING:
    from regard import Evaluation, Trained


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
    json: AsJson = False,
) -> None:
    """Score a model on data with known answers, or compare two."""
    import regard

    given, search = files_and_settings(arguments or ())
    rival, files = _rival_and_files(run, given)
    models = {str(run): regard.load(run, *(others or ()))}
    if rival is not None:
        models[str(rival)] = regard.load(rival)
        refuse_strangers(models)
    files = files or _test_files(run, models[str(run)])
    found = {}
    for name, trained in models.items():
        with console.progress(f"scoring {name}", None) as tick:
            found[name] = trained.evaluate(files, columns(where), tick=tick, **search)
    if rival is not None:
        compare(files, found, as_json=json)
    elif json:
        console.write_json({"files": files} | told(found[str(run)]))
    else:
        _show(files, found[str(run)])


def _rival_and_files(run: Path, given: list[str]) -> tuple[Path | None, list[str]]:
    """Data is never a folder, and a run always is."""
    from regard.files.lines import expand

    runs = [Path(name) for name in given if Path(name).is_dir()]
    if len(runs) > 1:
        raise RunError(f"{runs[1]}: two runs are compared at a time; leave out all others")
    if run in runs:
        raise RunError(f"{run}: a run is compared with another, not with itself")
    files = [name for name in given if not Path(name).is_dir()]
    for name in files:
        if not Path(name).suffix and not any(Path(file).exists() for file in expand(name)):
            raise RunError(f"{name}: no such run or file")
    return next(iter(runs), None), files


def _show(files: list[str], found: "Evaluation") -> None:
    console.line(f"{', '.join(files)}: {found.n_examples:,} rows")
    console.scores({"": found.metrics}, {"": found.intervals})
    if found.intervals:
        console.line(SURE, "dim")
    for signature, names in groupby(found.signatures, found.signatures.__getitem__):
        console.line(f"{', '.join(names)}: {signature}", "dim")
    if found.by_kind:
        console.OUT.print()
        console.table(_kinds(found.by_kind))


def _kinds(by_kind: dict[str, dict[str, float]]) -> Table:
    """A row for each kind: `LOC  f1 91.20  precision …  n 120`."""
    names = list(next(iter(by_kind.values())))
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    for kind, scores in by_kind.items():
        cells = (f"{scores[name]:,.0f}" if name == "n" else f"{scores[name]:.2f}" for name in names)
        table.add_row(Text(printable(kind)), *cells)
    return table


def _test_files(run: Path, trained: "Trained") -> list[str]:
    if trained.data is None:
        raise RunError(f"{run}: a model folder names no test data; say which: regard eval {run} FILES")
    if trained.data.test is None:
        raise RunError(f"{run}: its recipe has no test data; say which: regard eval {run} FILES")
    return list(trained.data.test)
