from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.answers import Form, Source, write_answers, write_table, write_tables
from regard.cli.arguments import (
    Beam,
    Columns,
    Encoding,
    Inputs,
    Others,
    Run,
    Settings,
    User,
    columns,
    search_settings,
)
from regard.cli.question import split_options, typed_cells
from regard.cli.spoken import LIVE, checked_form, spread, write_forms, write_heard
from regard.errors import DataError


def predict(
    run: Run,
    inputs: Inputs = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Inputs to answer: one a line, or a file like the training data; or .gz.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the columns of FILE and of the answers to this .csv, .tsv, .jsonl or .parquet; "
            "with --format srt, vtt or ctm, a file for each recording into this folder.",
        ),
    ] = None,
    user: User = None,
    where: Columns = None,
    encoding: Encoding = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines: input, answer, scores.")] = False,
    kind: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORM",
            help="text, json; of recordings also srt, vtt (subtitles) or ctm (times).",
        ),
    ] = "text",
    rate: Annotated[
        int, typer.Option(metavar="N", help="Samples a second of raw 16-bit sound on standard input (-).")
    ] = 16_000,
    beam: Beam = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            "--k",
            "-k",
            metavar="N",
            min=1,
            help="The N best answers to each input: lines of number, score, answer; columns with --out.",
        ),
    ] = None,
    others: Others = None,
    engine: Annotated[
        str,
        typer.Option(metavar="NAME", help="builtin, ct2 (CTranslate2), or auto: the faster one that can."),
    ] = "builtin",
    int8: Annotated[bool, typer.Option("--int8", help="Let CTranslate2 round the weights.")] = False,
    settings: Settings = None,
) -> None:
    """Answer inputs: arguments, the rows of a file, or the lines of standard input.

    A line each, in their order, as soon as they are ready; blank lines stay blank. The answer to a single
    argument may have several lines. A folder stands for its files; - is sound that comes in live.
    """
    import regard

    search: dict[str, Any] = search_settings(settings or ())
    trained = regard.load(run, *(others or ()), engine=engine, int8=int8)
    best = trained.task.best
    search |= {"beam": beam} if beam is not None else {}
    search |= {best: top} if best and top is not None else {}
    top = top or (int(search[best]) if str(search.get(best, "")).isdigit() else None)
    json = checked_form(kind, trained.task) == "json" or json
    fields = trained.task_config.question
    options, questions = split_options(inputs or (), trained.task.options)
    search |= options
    if questions == [LIVE] and trained.task.listens:
        write_heard(trained, rate, search, Form(json=json), kind)
        return
    questions = spread(questions, fields)
    typed = typed_cells(questions, fields)
    if user is not None:
        if typed or file is not None:
            raise DataError(f"--user {user}: stands instead of an input; leave out one of them")
        typed = {name: [trained.history(user)] for name in fields}
    measured, grouping = trained.task_config.measured, trained.task_config.grouping
    whole = grouping and grouping.whole
    source = Source(run, fields, typed, file, columns(where), encoding, measured, whole)
    form = Form(json=json, top=top, shows_engine=engine != "builtin")
    if kind in trained.task.forms:
        write_forms(trained, source, search, kind, out)
    elif trained.task.tabular and not json:
        write_tables(trained, source, search, out)
    elif out is not None:
        write_table(trained, source, search, form, out)
    else:
        write_answers(trained, source, search, form)
