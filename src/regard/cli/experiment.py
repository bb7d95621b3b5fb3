import time
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import console


def experiment(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Which one; without it, all are listed.", show_default=False),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the page, its picture and the index go.")
    ] = Path("experiments"),
    seeds: Annotated[int, typer.Option(min=2, max=10, help="How many seeds the intervals are over.")] = 3,
    thorough: Annotated[bool, typer.Option("--thorough", help="Longer, with the same questions.")] = False,
) -> None:
    """Put a claim about attention to the test: train, measure, draw, and say whether it holds.

    The page is written in English and in Chinese (zh/). The verdict follows from intervals over seeds.
    """
    import torch

    from regard.errors import RegardError, did_you_mean
    from regard.experiments import EXPERIMENTS, Run
    from regard.experiments.page import write

    if name is None:
        console.facts([(one.name, one.claim.en) for one in EXPERIMENTS.values()])
        return
    if name not in EXPERIMENTS:
        raise RegardError(f"{name}: no such experiment{did_you_mean(name, list(EXPERIMENTS))}")
    if out.exists() and not out.is_dir():
        raise RegardError(f"{out}: is a file; name a folder for the pages with --out")
    chosen = EXPERIMENTS[name]
    console.line(chosen.claim.en, "bold")
    began = time.process_time()
    outcome = chosen.run(Run(range(1, seeds + 1), thorough, lambda line: console.line(line)))
    facts = {
        "seeds": seeds,
        "thorough": thorough,
        "seconds": round(time.process_time() - began, 1),
        "torch": torch.__version__,
    }
    console.facts(
        [
            (f"{'holds' if check.holds else 'does not'}", f"{check.says.en}: {check.figure} ({check.bound})")
            for check in outcome.checks
        ]
    )
    console.line(f"verdict: {outcome.verdict.en}", "bold")
    page, *_ = [
        path for path in write(out, chosen, outcome, facts, list(EXPERIMENTS)) if path.suffix == ".md"
    ]
    console.facts([("page", str(page))])
