"""The command line: one thin file per verb, each parses, calls the API and prints.

A fault of the input is one sentence on standard error and exit code 2; a fault of ours is a traceback.
Verbs import what they need when they run: `regard --help` must not wait for torch.
"""

import os
import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from regard import __version__
from regard.cli import console
from regard.cli.baseline import baseline
from regard.cli.beams import beams
from regard.cli.board import board
from regard.cli.check import check
from regard.cli.cv import cv
from regard.cli.demo import demo
from regard.cli.doctor import doctor
from regard.cli.embed import embed
from regard.cli.evaluate import evaluate
from regard.cli.experiment import experiment
from regard.cli.explain import explain
from regard.cli.export import export
from regard.cli.import_ import import_
from regard.cli.info import info
from regard.cli.init import init
from regard.cli.positions import positions
from regard.cli.predict import predict
from regard.cli.relate import relate
from regard.cli.report import report
from regard.cli.serve import serve
from regard.cli.sweep import sweep
from regard.cli.train import train
from regard.cli.watch import watch
from regard.errors import RegardError


class Verbs(TyperGroup):
    """Handler of errors of every verb that cannot go on."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RegardError as fault:
            console.error(str(fault))
            raise typer.Exit(2) from None
        except BrokenPipeError:
            raise
        except OSError as fault:  # the disk, a name too long: nothing a traceback would explain better
            console.error(f"{fault.filename or 'standard output'}: {fault.strerror or fault}")
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            console.line("interrupted", console=console.ERR)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
VERBS: dict[str, Callable[..., None]] = {
    "demo": demo,
    "init": init,
    "check": check,
    "baseline": baseline,
    "train": train,
    "sweep": sweep,
    "cv": cv,
    "board": board,
    "eval": evaluate,
    "predict": predict,
    "explain": explain,
    "experiment": experiment,
    "beams": beams,
    "embed": embed,
    "relate": relate,
    "export": export,
    "import": import_,
    "info": info,
    "watch": watch,
    "report": report,
    "positions": positions,
    "doctor": doctor,
    "serve": serve,
}
for name, verb in VERBS.items():
    app.command(name)(verb)


def _print_version(wanted: bool) -> None:
    if wanted:
        console.line(f"regard {__version__}")
        raise typer.Exit


@app.callback()
def regard(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Train, look inside and serve attention models on your own data."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that lacks a character is no reason to stop
            stream.reconfigure(errors="backslashreplace")
    app()
