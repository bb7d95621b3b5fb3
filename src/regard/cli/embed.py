from collections.abc import Sequence
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import console
from regard.cli.arguments import Columns, Encoding, columns
from regard.cli.files import fill
from regard.cli.rows import TextFile, texts_of
from regard.errors import RunError
from regard.files.row import text_of

if TYPE_CHECKING:
    from regard.api.embed import Embedder


def embed(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run folder, or a BERT of Hugging Face.", show_default=False),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts, or paths; without any, the lines of standard input."),
    ] = None,
    file: TextFile = None,
    where: Columns = None,
    encoding: Encoding = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the vectors to this .npy file instead.")
    ] = None,
) -> None:
    """Print a vector for each text (or picture, by its path), as JSON lines."""
    from regard.api.embed import Embedder

    if out is not None:
        _refuse(out)
    embedder = Embedder.load(run)
    name, field = embedder.name, embedder.field
    rows, total = texts_of(run, texts, file, columns(where), encoding, name, field)
    if out is None:
        ahead, rows = tee(rows)
        for row, vector in zip(rows, embedder.stream(ahead), strict=True):
            numbers = [round(float(x), 7) for x in vector]
            console.write_json({"input": text_of(row.cells[name]), "embedding": numbers})
    else:
        vectors = []
        with console.progress("embedding", total) as tick:
            for vector in embedder.stream(rows):
                vectors.append(vector)
                tick(1)
        _save(out, vectors, embedder.d_out)
        console.line(f"wrote {out}: {len(vectors):,} vectors of {embedder.d_out} numbers")
    _report_cut(embedder)


def _report_cut(embedder: "Embedder") -> None:
    if embedder.n_cut:
        limit = f"longer than {embedder.max_length} tokens, which is what it reads"
        line = f"{embedder.n_cut:,} of the texts {limit}: only the beginning was read"
        console.line(line, "dim", console=console.ERR)


def _refuse(out: Path) -> None:
    """RunError for a file that could not be written in the end, before everything is read."""
    if out.suffix != ".npy":
        raise RunError(f"{out}: give a name that ends in .npy")
    if out.exists():
        raise RunError(f"{out}: already exists; choose another")
    if not out.parent.is_dir():
        raise RunError(f"{out}: no such folder; make it, or choose another")


def _save(out: Path, rows: Sequence[object], width: int) -> None:
    import numpy as np

    def save(place: Path) -> None:
        with place.open("wb") as file:
            np.save(file, np.array(rows, np.float32).reshape(len(rows), width))

    fill(out, save)
