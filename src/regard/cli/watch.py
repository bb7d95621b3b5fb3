import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from regard.cli import console
from regard.cli.arguments import TrainedIn
from regard.text.sanitize import clock, printable

if TYPE_CHECKING:
    from regard.runs.report import History

BARS = "▁▂▃▄▅▆▇█"
VALIDATIONS = 8


def watch(
    run: TrainedIn,
    every: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and leave.")] = False,
) -> None:
    """Look at a training from another terminal.

    How far it is, its curve, its validations. It leaves when the training ends; Ctrl-C leaves at any time
    and does not touch the training.
    """
    from regard.runs.report import History

    history = History.read(run)
    if once or not console.OUT.is_terminal:
        console.OUT.print(_screen(history, console.OUT.width))
        return
    with Live(_screen(history, console.OUT.width), console=console.OUT, auto_refresh=False) as live:
        while history.is_training:
            time.sleep(every)
            history = History.read(run)
            live.update(_screen(history, console.OUT.width), refresh=True)


def _screen(history: "History", width: int) -> Group:
    parts: list[Text | Table] = [Text(printable(f"{history.run}: {history.state}"), "bold")]
    if history.steps:
        last = history.steps[-1]
        share, seconds = last["progress"], last["seconds"]
        left = f" · {clock(seconds * (1 - share) / share)} left" if share and history.is_training else ""
        rate = history.throughput[-1][1] if history.throughput else 0.0
        parts.append(
            Text(
                f"step {history.step:,} · epoch {last['epoch'] + 1} · loss {last['loss']:.3f} · "
                f"{rate:,.0f} {history.unit}/s · {clock(history.seconds)}{left}"
            )
        )
        parts.append(Text(f"loss {spark([y for _, y in history.series('loss')], width - 6)}"))
    if history.validations:
        parts.append(Text(f"{history.metric} {spark([y for _, y in history.validated(history.metric)], 60)}"))
        parts.append(_validations(history))
    parts += [Text(printable(f"step {step}: {what}"), "yellow") for step, what in history.mishaps[-3:]]
    if not (history.is_training or history.finished):
        parts.append(Text("not being trained now; the same regard train command goes on", "dim"))
    return Group(*parts)


def _validations(history: "History") -> Table:
    table = Table(box=None, pad_edge=False)
    names = list(history.validations[-1]["metrics"])
    for name in ("step", *names, ""):
        table.add_column(name, justify="right")
    for entry in history.validations[-VALIDATIONS:]:
        numbers = [f"{entry['metrics'].get(name) or 0:.3f}" for name in names]
        table.add_row(f"{entry['step']:,}", *numbers, "best" if entry["best"] else "")
    return table


def spark(values: list[float], width: int) -> str:
    """A line of bars, one for each group of neighbours."""
    finite = [value for value in values if value is not None]
    if not finite or width < 1:
        return ""
    size = -(-len(finite) // width)
    means = [sum(group) / len(group) for i in range(0, len(finite), size) if (group := finite[i : i + size])]
    low, high = min(means), max(means)
    return "".join(BARS[round((mean - low) / ((high - low) or 1) * (len(BARS) - 1))] for mean in means)
