import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from regard.cli import console
from regard.cli.arguments import AsJson, Overrides, RecipeFile
from regard.text.sanitize import printable

if TYPE_CHECKING:
    from regard.check.cost import Estimate
    from regard.check.examine import Report
    from regard.check.finding import Finding

MARKS = {"error": ("✗", "bold red"), "warning": ("!", "bold yellow"), "note": ("·", "dim")}
MOST_LABELS = 20


def check(recipe: RecipeFile, overrides: Overrides = None, json: AsJson = False) -> None:
    """Examine a recipe's data, memory and time before training.

    Reads every file to its end and tells all faults at once, with lengths, labels and what the vocabulary
    cannot spell; then trains for a few seconds to measure. Writes nothing.
    Exit code 2 if training would stop, 0 if there is nothing worse than a warning.
    """
    from regard.check.examine import examine
    from regard.recipe import Recipe

    described = Recipe.read(recipe, overrides or ())
    with console.ERR.status("examining the data, then training for a few seconds …"):
        report = examine(described)
    if json:
        console.write_json(report.to_json())
    else:
        console.line(f"{recipe}: {described.task.kind} with {described.model}", "bold")
        _print(report)
        _conclude(report, shlex.join([str(recipe), *(overrides or ())]))
    if not report.trainable:
        raise typer.Exit(2)


def _print(report: "Report") -> None:
    console.facts(_facts(report))
    if report.findings:
        console.OUT.print()
    for finding in report.findings:
        _print_finding(finding)
    for role, lengths in report.lengths.items():
        console.OUT.print()
        console.line(f"{role}: tokens a row (median {lengths.median:,}, longest {lengths.longest:,})", "dim")
        console.bars(zip(_bins(lengths.edges), lengths.counts, strict=True))
    if report.labels:
        console.OUT.print()
        console.line(report.counted, "dim")
        console.bars(list(report.labels.items())[:MOST_LABELS])
        if len(report.labels) > MOST_LABELS:
            console.line(f"and {len(report.labels) - MOST_LABELS:,} more labels", "dim")
    if report.estimate:
        console.OUT.print()
        console.facts(_estimates(report.estimate))


def _bins(edges: tuple[int, ...]) -> list[str]:
    """`0–9`, `10–19`, …, `50 and more`; a bin of one length is called by it."""
    closed = [str(low) if low == high - 1 else f"{low}–{high - 1}" for low, high in pairwise(edges)]
    return [*closed, f"{edges[-1]} and more"]


def _facts(report: "Report") -> Iterator[tuple[str, str]]:
    yield report.read, ", ".join(f"{split} {n:,}" for split, n in report.rows.items())
    if not report.vocabulary:
        return
    yield "vocabulary", ", ".join(f"{role} {n:,} tokens" for role, n in report.vocabulary.items())
    for name, shares in (("unknown", report.unknown), ("in bytes", report.spelt)):
        by_split = (f"{split} {_percent(max(by_role.values()))}" for split, by_role in shares.items())
        yield name, f"{', '.join(by_split)} of tokens"


def _percent(share: float) -> str:
    return f"{share:.2%}" if share else "0%"


def _print_finding(finding: "Finding") -> None:
    mark, style = MARKS[finding.severity]
    console.hanging(Text(f"{mark} ", style), finding.message)
    for place in finding.places:
        where = Text(f"  {printable(place.where)}  ", "dim")
        where.append(printable(place.excerpt), "default")
        if console.OUT.is_terminal:
            where.truncate(console.OUT.width, overflow="ellipsis")
        console.OUT.print(where, soft_wrap=True)


def _estimates(estimate: "Estimate") -> Iterator[tuple[str, str]]:
    yield "parameters", f"{estimate.parameters:,}"
    yield (
        "memory",
        f"{console.size(estimate.memory)} at most, measured with the largest batch on {estimate.device}",
    )
    epoch = f"{console.span(estimate.seconds_per_epoch)} an epoch of {estimate.steps_per_epoch:,} steps"
    whole = f", at most {console.span(estimate.total_seconds)}" if estimate.total_seconds else ""
    yield "time", f"{epoch}{whole}; without validation, measured over {estimate.measured_steps} steps"


def _conclude(report: "Report", recipe: str) -> None:
    n_errors = sum(finding.severity == "error" for finding in report.findings)
    n_warnings = sum(finding.severity == "warning" for finding in report.findings)
    counted = [
        f"{n} {name}{'s' * (n > 1)}" for n, name in ((n_errors, "error"), (n_warnings, "warning")) if n
    ]
    console.OUT.print()
    if n_errors:
        console.line(f"{', '.join(counted)}: training would stop; mend the errors first", "bold red")
    else:
        console.line(
            f"{counted[0] if counted else 'nothing wrong'}; train with: regard train {recipe}", "bold"
        )
