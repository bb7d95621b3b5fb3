"""What `regard predict --embed` writes: JSON lines, or an array of numpy."""

from collections.abc import Iterable, Sequence
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli import console
from regard.cli.files import fill
from regard.errors import RecipeError, RunError

if TYPE_CHECKING:
    from regard.api.embed import Embedder


def refuse_others(given: dict[str, object]) -> None:
    """Settings that are about answers."""
    if others := [name for name, value in given.items() if value]:
        raise RecipeError(f"--embed makes vectors and answers nothing; leave {others[0]} out")


def write_vectors(run: Path, texts: Iterable[str], out: Path | None, total: int | None) -> None:
    from regard.api.embed import Embedder

    if out is not None:
        _refuse(out)
    embedder = Embedder.load(run)
    if out is None:
        asked, kept = tee(texts)
        for text, vector in zip(kept, embedder.stream(asked), strict=True):
            console.write_json({"input": text, "embedding": [round(float(x), 7) for x in vector]})
        _tell_cut(embedder)
        return
    rows = []
    with console.progress("embedding", total) as tick:
        for vector in embedder.stream(texts):
            rows.append(vector)
            tick(1)
    _save(out, rows, embedder.d_out)
    console.line(f"wrote {out}: {len(rows):,} vectors of {embedder.d_out} numbers")
    _tell_cut(embedder)


def _tell_cut(embedder: "Embedder") -> None:
    if embedder.n_cut:
        limit = f"longer than {embedder.max_length} pieces, which is what it reads"
        line = f"{embedder.n_cut:,} of the texts {limit}: only the beginning was read"
        console.line(line, "dim", console=console.ERR)


def _refuse(out: Path) -> None:
    """Where nothing could be written in the end, before everything is read."""
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
