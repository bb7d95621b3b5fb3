from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from regard.cli import console
from regard.cli.arguments import AsJson, Beam, Inputs, Run, Settings, search_settings
from regard.cli.files import free, write
from regard.cli.question import only_question


def beams(
    run: Run,
    inputs: Inputs = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The page; by default beams.html.", show_default=False),
    ] = None,
    json: AsJson = False,
    beam: Beam = None,
    settings: Settings = None,
) -> None:
    """Show how the answer was found.

    The answers are printed; a page (one file, no network needed) draws every beginning that the search
    considered, and what became of it.
    """
    import regard
    from regard.text.sanitize import printable

    search = search_settings(settings or ()) | ({} if beam is None else {"beam": beam})
    trained = regard.load(run)
    tree = trained.beams(only_question(inputs or (), trained.task_config.question), **search)
    if json:
        console.write_json(tree.to_json())
        return
    table = Table("", "score", "answer", box=None, pad_edge=False, header_style="dim")
    for answer in tree.answers:
        table.add_row(str(answer.rank), f"{answer.score:.3f}", Text(printable(answer.text)))
    console.OUT.print(table)
    steps = max(node.step for node in tree.nodes)
    console.line(f"{len(tree.nodes) - 1:,} hypotheses in {steps} steps", "dim")
    page = write(out or free("beams.html"), tree.to_html())
    console.facts([("page", str(page))])
