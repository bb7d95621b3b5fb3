from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from regard.cli import console
from regard.cli.arguments import AsJson, Run
from regard.cli.rows import asks, file_rows, layout
from regard.errors import DataError, RunError

if TYPE_CHECKING:
    from regard.files.row import Asked
    from regard.interop.export import Report
    from regard.tasks.task import Task

MOST_TEXTS = 500
"""Texts of the run's own data."""


def export(
    run: Run,
    to: Annotated[
        str, typer.Option(metavar="ENGINE", help="hf, ct2 or onnx: Hugging Face, CTranslate2, ONNX Runtime.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A new folder; by default beside the run.", show_default=False),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Texts to check it on, 200 or more, as predict takes; by default those of the run's data.",
        ),
    ] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Weights in 8 bits (ct2): smaller and faster, not quite equal.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Write a model for another engine, proven to answer alike.

    Both engines answer the same texts; if the answers or their probabilities differ, nothing is left behind.
    """
    import regard
    from regard.interop.export import find_exporter

    trained = regard.load(run, device="cpu")
    find_exporter(trained.task, to)  # refused before texts are looked for
    texts, references = _given(run, inputs, trained.task)
    named = run if run.name.strip(".") else run.resolve()
    folder = out or named.with_name(f"{named.name}-{to}{'-int8' if int8 else ''}")
    with console.progress("checking", (6 if int8 else 3) * len(texts)) as tick:
        report = trained.export(folder, to, texts, references=references, int8=int8, tick=tick)
    if json:
        console.write_json(report.to_json())
        return
    console.table(_table(report))
    for note in report.notes:
        console.line(note, "dim")
    console.line(f"wrote {folder}")


def _given(run: Path, inputs: str | None, task: "Task") -> "tuple[list[Asked], list[str] | None]":
    """Questions, and the answers they should get where the run's data says so."""
    from regard.files.read import read_rows
    from regard.files.row import text_of
    from regard.recipe import Recipe

    if inputs is not None:
        rows_of_file = file_rows(inputs, *layout(run, inputs, task.inputs, None), task.question)
        return [*rows_of_file] if _reads_files(task) else list(map(asks, rows_of_file)), None
    path = run / "recipe.json"
    if not path.is_file():
        raise RunError(
            f"{run}: a model folder has no texts to check an export on; give some with --inputs FILE"
        )
    recipe = Recipe.read(path)
    files = recipe.data.valid or recipe.data.test or recipe.data.train
    try:
        reading: dict[str, Any] = {"fields": recipe.task.unfitted, "encoding": recipe.data.encoding}
        grouping = recipe.task.grouping and recipe.task.grouping.whole
        read = read_rows(files, recipe.columns(), grouping=grouping, **reading)
        rows = list(islice(read, MOST_TEXTS))
    except DataError as fault:
        raise DataError(f"{fault}; or give other texts to check it on, with --inputs FILE") from None
    first, *others = task.inputs
    cells = [
        {role: cell if role in recipe.task.asked else text_of(cell) for role, cell in row.cells.items()}
        for row in rows
    ]
    if _reads_files(task):
        return [replace(row, cells={role: row.cells[role] for role in task.inputs}) for row in rows], None
    texts: list[Asked] = [
        {role: texts[role] for role in task.inputs} if others else texts[first] for texts in cells
    ]
    answers = [role for role in task.roles if role not in task.inputs]
    return texts, [texts[answers[0]] for texts in cells] if answers else None


def _reads_files(task: "Task") -> bool:
    """True if its rows are asked as they are, since a path alone would open no file."""
    return any(field.is_file for field in task.question.values())


def _table(report: "Report") -> Table:
    table = Table(box=None, pad_edge=False)
    cells = {
        "engine": report.engine,
        "identical": f"{report.identical:.1%} of {report.n_compared:,}" if report.n_compared else "–",
        "difference": f"{report.difference:.1e}",
        "texts/s": f"{report.our_speed:,.0f} → {report.their_speed:,.0f}",
        "size": console.size(report.n_bytes),
    }
    if report.bleu is not None:
        cells["bleu"] = " → ".join(f"{score:.2f}" for score in report.bleu)
    for name in cells:
        is_name = name == "engine"  # which may break, where numbers may not
        table.add_column(name, justify="left" if is_name else "right", no_wrap=not is_name)
    table.add_row(*cells.values())
    return table
