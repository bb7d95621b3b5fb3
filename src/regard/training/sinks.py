"""Console sink of training events; the journal on disk is in journal.py."""

import math
import resource
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from regard.text.sanitize import clock, printable
from regard.training.events import (
    Encoding,
    Evaluated,
    Event,
    Finished,
    Noted,
    Prepared,
    RolledBack,
    Saved,
    SaveFailed,
    Scoring,
    SetAside,
    Skipped,
    Split,
    Step,
)

WIDE = 116
"""Smallest terminal width for all details and a progress bar."""
SILENT_SECONDS = 2.0
"""Seconds of encoding before it is reported."""


class ConsoleSink:
    """Console output: one live line on a terminal, occasional plain lines elsewhere."""

    QUIET_SECONDS = 30.0

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(file=sys.stderr)
        self.rate, self.loss, self.metric = 0.0, math.nan, ""
        self.last_step: Step | None = None
        self.last_print = -math.inf
        self.live: Progress | None = None
        self.line: TaskID | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case Encoding():
                self._encoding(event)
            case Noted():
                self._print(event.sentence)
            case Prepared():
                self._prepared(event)
            case Step():
                self._step(event)
            case Evaluated():
                self._evaluated(event)
            case Finished():
                self.close()
                self._print(
                    f"finished at step {event.step} after {clock(event.seconds)} ({event.reason}); "
                    f"kept the {event.chosen}: {_scores(event.metrics)}"
                )
            case Scoring():
                self._scoring(event)
            case Split():
                if event.parts > 1:
                    self._print(f"batches are split into {event.parts} micro-batches to fit into memory")
            case Skipped():
                self._print(
                    f"step {event.step}: update skipped, loss {event.loss:.3g}, "
                    f"gradient norm {event.grad_norm:.3g} ({event.total} skipped so far)"
                )
            case RolledBack():
                self._print(
                    f"rolled back to step {event.step}; the {len(event.excluded)} bad batches are excluded"
                )
            case SaveFailed():
                self._print(
                    f"step {event.step}: checkpoint not written ({event.why}); the previous one is intact"
                )
            case SetAside():
                self._print(
                    f"{event.path}: {event.fault}; renamed to {event.moved_to.name}, using the previous one"
                )
            case Saved():
                pass

    def already_finished(self, run: str) -> None:
        self._print(f"{run}: training has already finished; start over with --fresh")

    def close(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def _print(self, line: str, dim: str = "") -> None:
        """Print a line without interpreting markup; a pipe gets it unwrapped."""
        line = "\n".join(map(printable, line.split("\n")))
        self.console.print(Text.assemble(line, (dim, "dim")), soft_wrap=not self.console.is_terminal)

    def _prepared(self, event: Prepared) -> None:
        frozen = 0 < event.n_learning < event.n_parameters
        trainable = f" ({event.n_learning / 1e6:.2f} M trainable)" if frozen else ""
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in event.left_out.items())
        left_out = f" (left out: {reasons})" if reasons else ""
        self._print(
            f"{event.model}: {event.n_parameters / 1e6:.2f} M parameters{trainable} on {event.device}\n"
            f"{event.n_train:,} training examples{left_out}, {event.n_valid:,} for validation; "
            f"run folder {event.run}"
            + (f"\nresuming from step {event.resumed_step:,}" if event.resumed_step else "")
        )
        self._start()

    def _start(self) -> None:
        """Start the live line on a terminal."""
        if self.console.is_terminal and self.live is None:
            self.live = Progress(
                *([BarColumn(bar_width=16)] if self.console.width >= WIDE else []),
                TextColumn("{task.description}", markup=False),
                console=self.console,
                transient=True,
            )
            self.live.start()
            self.line = self.live.add_task("", total=1.0)

    def _encoding(self, event: Encoding) -> None:
        if event.seconds < SILENT_SECONDS:
            return
        self._start()
        self._show(f"encoding · {event.rows:,} rows · {event.rows / event.seconds:,.0f} rows/s", 0.0)

    def _show(self, line: str, progress: float) -> None:
        """Show the current state on the live line, or print it now and then."""
        if self.live is not None and self.line is not None:
            self.live.update(self.line, completed=progress, description=line)
        elif time.monotonic() - self.last_print >= self.QUIET_SECONDS:
            self.last_print = time.monotonic()
            self._print(line)

    def _step(self, event: Step) -> None:
        before = self.last_step
        since = event.seconds - before.seconds if before else 0.0
        if since > 0:
            rate = event.tokens / since
            self.rate = rate if not self.rate else self.rate + 0.1 * (rate - self.rate)
        self.loss = event.loss if math.isnan(self.loss) else self.loss + 0.1 * (event.loss - self.loss)
        self.last_step = event
        self._show(self._line(event), event.progress)

    def _line(self, event: Step) -> str:
        """Describe a step: all details, or on a narrow terminal the most important ones."""
        wide = self.live is None or self.console.width >= WIDE
        left = event.seconds * (1 - event.progress) / event.progress if event.progress else None
        parts = [
            f"step {event.step}",
            f"epoch {event.epoch + 1}" if wide else "",
            f"loss {self.loss:.3f}",
            self.metric,
            f"{self.rate:,.0f} {event.unit}/s",
            f"lr {event.lr:.2g}" if wide else "",
            clock(event.seconds) if wide else "",
            "" if left is None else f"{clock(left)} left",
            _memory(),
        ]
        return " · ".join(part for part in parts if part)

    def _scoring(self, event: Scoring) -> None:
        line = f"scoring {event.split} …"
        if self.live is not None and self.line is not None:
            self.live.update(self.line, completed=1.0, description=line)
        else:
            self._print(line)

    def _evaluated(self, event: Evaluated) -> None:
        self.metric = "".join(f"{name} {value:.2f}" for name, value in list(event.metrics.items())[1:2])
        self.last_step = None
        mark = " ← best" if event.best else ""
        times = f"{clock(event.seconds)}, validation {event.took:.1f} s"
        self._print(f"step {event.step}: {_scores(event.metrics)}{mark}", f"  ({times})")


def _scores(metrics: dict[str, float]) -> str:
    return ", ".join(
        f"{name} {value:.3f}" if name == "loss" else f"{name} {value:.2f}" for name, value in metrics.items()
    )


def _memory() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB"
