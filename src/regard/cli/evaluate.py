from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from regard.cli import console
from regard.cli.arguments import AsJson, Others, Run, columns, files_and_settings
from regard.errors import RunError
from regard.plain import printable


def evaluate(
    run: Run,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES|KEY=VALUE",
            help="Data laid out as for training, by default the recipe's test split; "
            "and settings of the search, such as beam=5.",
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--columns", metavar="ROLE=COLUMN,…", help="What the columns are: source=2,target=1."),
    ] = None,
    others: Others = None,
    json: AsJson = False,
) -> None:
    """Score a model on data whose answers are known."""
    import regard

    files, search = files_and_settings(arguments or ())
    trained = regard.load(run, *(others or ()))
    layout = _layout(run, files)
    files = files or layout.pop("files")
    if where is not None:
        layout["columns"] = columns(where)
    with console.progress("scoring", None) as tick:
        found = trained.evaluate(files, **layout, tick=tick, **search)
    if json:
        console.write_json(
            {
                "files": files,
                "rows": found.n_examples,
                "scores": found.metrics,
                "signatures": found.signatures,
            }
            | ({"by_kind": found.by_kind} if found.by_kind else {})
        )
        return
    console.line(f"{', '.join(files)}: {found.n_examples:,} rows")
    console.scores({"": found.metrics})
    for name, signature in found.signatures.items():
        console.line(f"{name}: {signature}", "dim")
    if found.by_kind:
        console.OUT.print()
        console.OUT.print(_table(found.by_kind))


def _table(by_kind: dict[str, dict[str, float]]) -> Table:
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


def _layout(run: Path, files: list[str]) -> dict[str, Any]:
    """The test files of the run's recipe, its columns (for files of the same format) and encoding."""
    from regard.data.source import file_format
    from regard.recipe import Recipe

    path = run / "recipe.json"
    if not path.is_file():
        if files:
            return {}
        raise RunError(f"{run}: a model folder names no test data; say which: regard eval {run} FILES")
    data = Recipe.read(path).data
    if files:
        alike = file_format(files[0]) == file_format(data.train[0])
        return {"columns": data.columns if alike else None, "encoding": data.encoding}
    if data.test is None:
        raise RunError(f"{run}: its recipe has no test data; say which: regard eval {run} FILES")
    return {"files": list(data.test), "columns": data.columns, "encoding": data.encoding}
