"""What `regard predict --entities` writes: a line for each text, with the relations that were found in it."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli import console
from regard.cli.texts import tell_cut
from regard.errors import RecipeError
from regard.text.plain import one_line, printable

if TYPE_CHECKING:
    from regard.files.row import Row


def refuse_others(given: dict[str, object]) -> None:
    """Settings that are about other answers."""
    if others := [name for name, value in given.items() if value]:
        raise RecipeError(f"--entities finds relations and does not search; leave {others[0]} out")


def write_relations(run: Path, tagger: Path, texts: "Iterable[str | Row]", *, json: bool) -> None:
    from regard.api.relate import Relations

    clean = printable if sys.stdout.isatty() else one_line
    relations = Relations.load(run, tagger)
    cut = 0
    for found in relations.stream(texts):
        if json:
            console.write_json({"input": found.input} | found.to_json())
        else:
            sys.stdout.write(clean(found.text) + "\n")
        sys.stdout.flush()
        cut += found.cut
    tell_cut(relations.relater, cut)
