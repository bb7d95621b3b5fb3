"""Printing of the verbs: results on standard output, remarks on standard error."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from regard.text.sanitize import escaped, finite, printable

Interval = Sequence[float]
"""A lower end and an upper one."""

OUT = Console(highlight=False)
ERR = Console(highlight=False, stderr=True)
WIDEST_NAME = 24
"""Widest name beside a bar."""


def line(text: str, style: str = "", *, console: Console = OUT) -> None:
    """One line, whatever it holds: no markup, no terminal codes, not wrapped when it goes to a file."""
    console.print(Text(printable(text), style), soft_wrap=not console.is_terminal)


def error(sentence: str) -> None:
    ERR.print(Text.assemble(("error: ", "bold red"), printable(sentence)), soft_wrap=True)


def hanging(head: Text, text: str, *, console: Console = OUT) -> None:
    """A head, and a text beside it that stays to the right of it; not wrapped when it goes to a file."""
    body = Text(printable(text))
    indent = head.cell_len
    rows = body.wrap(console, max(20, console.width - indent)) if console.is_terminal else [body]
    for number, row in enumerate(rows):
        row.rstrip()
        console.print((head if number == 0 else Text(" " * indent)) + row, soft_wrap=True)


def facts(pairs: Iterable[tuple[str, str]], *, console: Console = OUT) -> None:
    """Names on the left, values on the right."""
    pairs = list(pairs)
    widest = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        hanging(Text(f"{name.ljust(widest)}  ", "dim"), value, console=console)


def table(rows: Table) -> None:
    """A line each when it goes to a file, however wide; squeezed into the lines of a terminal."""
    if OUT.is_terminal:
        OUT.print(rows)
        return
    was, options = OUT.width, OUT.options.update(max_width=sys.maxsize)
    OUT.width = max(was, Measurement.get(OUT, options, rows).maximum)
    OUT.print(rows)
    OUT.width = was


def bars(counts: Iterable[tuple[str, int]]) -> None:
    """A line for each name with a bar to the measure of the largest; wide characters take two cells."""
    from regard.explain.terminal import bar

    named = [(shortened(printable(name)), count) for name, count in counts]
    widest = max(cell_len(name) for name, _ in named)
    most = max(count for _, count in named) or 1
    room = max(10, min(50, OUT.width - widest - 14))
    for name, count in named:
        line = Text("  " + " " * (widest - cell_len(name)) + name + " ")
        line.append(bar(count / most, room).rstrip() + " ", "cyan").append(f"{count:,}", "dim")
        OUT.print(line, soft_wrap=True)


def shortened(text: str) -> str:
    return text if cell_len(text) <= WIDEST_NAME else set_cell_size(text, WIDEST_NAME - 1) + "…"


def scores(
    by_split: Mapping[str, Mapping[str, float | None]],
    intervals: Mapping[str, Mapping[str, Interval]] | None = None,
) -> None:
    """One line a split: `test  loss 2.113  bleu 14.20 [12.90, 15.50]  chrf 33.10 [32.00, 34.30]`."""

    def shown(split: str, metrics: Mapping[str, float | None]) -> str:
        known = (intervals or {}).get(split, {})
        return "  ".join(f"{name} {score(name, value, known.get(name))}" for name, value in metrics.items())

    facts(((split, shown(split, metrics)) for split, metrics in by_split.items()))


def score(metric: str, value: float | None, interval: Interval | None = None, sign: str = "") -> str:
    """Format a score with its interval, where that is known: `14.20 [12.90, 15.50]`. JSON has no infinity."""
    form = f"{sign}.{3 if metric == 'loss' else 2}f"
    if value is None or math.isinf(value):
        return "∞"
    if interval is None:
        return format(value, form)
    return f"{value:{form}} [{interval[0]:{form}}, {interval[1]:{form}}]"


@contextmanager
def progress(doing: str, total: int | None, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """A bar on standard error that goes forward as the given function is told; none where nobody looks."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=ERR,
        transient=True,
        redirect_stdout=False,  # what is written meanwhile belongs to its reader, not above the bar
        disable=not (shown and ERR.is_terminal),
    )
    with bar:
        task = bar.add_task(doing, total=total)
        yield lambda done: bar.advance(task, done)


def size(n_bytes: float) -> str:
    """Format bytes for people: 830 B, 1.4 kB, 35 MB."""
    unit = "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n_bytes < 1000 or unit == "TB":
            break
        n_bytes /= 1000
    return f"{n_bytes:.0f} {unit}" if n_bytes >= 10 or unit == "B" else f"{n_bytes:.1f} {unit}"


def span(seconds: float) -> str:
    """Format seconds for people: 0.8 s, 42 s, 5 min, 3.2 h."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def write_json(value: Any) -> None:
    """One JSON value on one line of standard output."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(escaped(json.dumps(finite(value), ensure_ascii=not unicode)) + "\n")
