from pathlib import Path
from typing import Annotated

import typer

from regard.cli import console
from regard.cli.arguments import TrainedIn


def report(
    run: TrainedIn,
    out: Annotated[
        Path | None, typer.Option(help="Where to write it; report.html in the run folder by default.")
    ] = None,
) -> None:
    """Draw a run's curves, samples and times on one page.

    One HTML file that needs no network; during training or after.
    """
    from regard.runs.report import write_report

    console.line(f"wrote {write_report(run, out)}")
