import os
import stat
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import console
from regard.errors import ServeError

KEY_VARIABLE = "REGARD_KEY"
SHORTEST_KEY = 16


def serve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="Run or model folders; each is asked for by its folder's name."),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; other than this machine needs a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Holds the key clients must send; or set {KEY_VARIABLE}.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another name the server is called by, as behind a proxy."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="A page elsewhere that may ask, such as https://example.org."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="Another limit, such as characters=20000."),
    ] = None,
    show_limits: Annotated[
        bool, typer.Option("--show-limits", help="Print what requests may ask for, and exit.")
    ] = False,
) -> None:
    """Serve models over HTTP, with a page to try them.

    Ctrl-C ends it when what was asked is answered, a second one at once.
    """
    from regard.serve.limits import Limits

    limits = Limits.parse(limit or ())
    if show_limits:
        console.facts(
            (f"{name} = {getattr(limits, name):,.10g}", field.description or "")
            for name, field in Limits.model_fields.items()
        )
        return
    if not runs:
        raise ServeError("say which runs to serve, for example: regard serve runs/demo")
    key = _key(key_file)
    try:
        from regard.serve.server import serve as start
    except ImportError:
        raise ServeError(
            "serving needs more libraries; install them with: pip install 'regard[serve]'"
        ) from None
    names = ", ".join(run.resolve().name for run in runs)
    if console.OUT.is_terminal:
        console.line(f"loading {names} …")
    start(
        runs,
        host=host,
        port=port,
        key=key,
        allow_hosts=allow_host or (),
        allow_origins=allow_origin or (),
        limits=limits,
        tell=lambda url: console.line(f"serving {names} at {url}"),
    )


def _key(file: Path | None) -> str | None:
    """The key, from the file or the environment; all users of a machine can read command lines."""
    if file is None:
        where, key = KEY_VARIABLE, os.environ.pop(KEY_VARIABLE, None)
    else:
        if file.is_file() and file.stat().st_mode & stat.S_IWOTH:
            raise ServeError(f"{file}: everybody may write this key; let only yourself: chmod 600 {file}")
        where, key = str(file), file.read_text("utf-8", "replace").strip()
    if key is not None and (len(key) < SHORTEST_KEY or not key.isascii() or not key.isprintable()):
        raise ServeError(
            f"{where}: a key has at least {SHORTEST_KEY} letters, digits or signs of ASCII; make one with: "
            "openssl rand -hex 32"
        )
    return key
