from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from regard.cli import console
from regard.cli.arguments import AsJson
from regard.errors import RunError
from regard.text.sanitize import printable


def board(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder with runs in it, however deep.")
    ] = Path("runs"),
    out: Annotated[
        Path | None, typer.Option(help="The page to write; board.html in the folder by default.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List all runs of a folder, task by task, with their scores, intervals and baselines.

    As a table here, and as a page that can be sorted.
    """
    from dataclasses import asdict

    from regard.runs.search import board as made
    from regard.runs.search.page import write_page

    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; give one with runs in it, such as runs/")
    found, faults = made.entries(folder)
    for fault in faults:
        console.line(fault, console=console.ERR)
    if not found:
        raise RunError(f"{folder}: holds no runs; regard train makes one")
    if json:
        console.write_json([asdict(entry) for entry in found])
        return
    for task in dict.fromkeys(entry.task for entry in found):
        rows = [entry for entry in found if entry.task == task]
        console.line(task, "bold")
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in ("run", "model", "seed", "minutes", "split", rows[0].metric, "baseline"):
            table.add_column(name)
        for entry in rows:
            minutes = "" if entry.minutes is None else f"{entry.minutes:.1f}"
            baseline = "" if entry.baseline is None else f"{entry.baseline:.2f}"
            cells = (
                entry.name,
                entry.model,
                str(entry.seed),
                minutes,
                entry.split,
                made.scored(entry),
                baseline,
            )
            table.add_row(*(Text(printable(cell)) for cell in cells))
        console.table(table)
        console.OUT.print()
    console.line(f"wrote {write_page(out or folder / 'board.html', folder.name, made.board(found))}", "dim")
