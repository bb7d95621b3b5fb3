import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import console
from regard.cli.arguments import AsJson, Columns, Encoding, Run, columns
from regard.cli.rows import TextFile, report_cut, texts_of
from regard.text.sanitize import one_line, printable


def relate(
    run: Run,
    tagger: Annotated[
        Path, typer.Argument(metavar="TAG_RUN", help="A run that finds the entities.", show_default=False)
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Raw texts; without any, the lines of standard input."),
    ] = None,
    file: TextFile = None,
    where: Columns = None,
    encoding: Encoding = None,
    json: AsJson = False,
) -> None:
    """Find the entities in raw texts, and how every two of them are related.

    TAG_RUN finds the entities, RUN says what each two have to do with each other: a line for each text.
    """
    from regard.api.relate import Relations

    clean = printable if sys.stdout.isatty() else one_line
    rows, _ = texts_of(run, texts, file, columns(where), encoding, Relations.name, Relations.field)
    relations = Relations.load(run, tagger)
    cut = 0
    for related in relations.stream(rows):
        if json:
            console.write_json({"input": related.input} | related.to_json())
        else:
            sys.stdout.write(clean(related.text) + "\n")
        sys.stdout.flush()
        cut += related.cut
    report_cut(relations.relater, cut)
