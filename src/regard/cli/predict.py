from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import answers as answering
from regard.cli import embed as embedding
from regard.cli import relate as relating
from regard.cli.arguments import (
    Beam,
    Columns,
    Context,
    ContextFile,
    Others,
    Run,
    Second,
    Settings,
    columns,
    search_settings,
)
from regard.cli.texts import beside, beside_second
from regard.errors import DataError


def predict(
    run: Run,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts to answer; without any, the lines of standard input."),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Texts to answer: one a line, or a file like the training data; or .gz.",
        ),
    ] = None,
    where: Columns = None,
    context: Context = None,
    context_file: ContextFile = None,
    second: Second = None,
    encoding: Annotated[
        str | None, typer.Option(help="Of the file; by default that of the training data.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines: input, answer, scores.")] = False,
    beam: Beam = None,
    n_best: Annotated[
        int | None,
        typer.Option(metavar="N", help="Answers per text, as lines of: number of the text, score, answer."),
    ] = None,
    others: Others = None,
    engine: Annotated[
        str,
        typer.Option(metavar="NAME", help="builtin, ct2 (CTranslate2), or auto: the faster one that can."),
    ] = "builtin",
    int8: Annotated[bool, typer.Option("--int8", help="Let CTranslate2 round the weights.")] = False,
    settings: Settings = None,
    entities: Annotated[
        Path | None,
        typer.Option(
            metavar="TAG_RUN",
            help="Of raw texts: find entities with this tagger, and what each two have to do together.",
        ),
    ] = None,
    embed: Annotated[
        bool,
        typer.Option("--embed", help="A vector for each text, as JSON lines; RUN may also be a BERT folder."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --embed: write the vectors to this .npy file instead."),
    ] = None,
) -> None:
    """Answer texts: arguments, a file, or standard input.

    A line each, in their order, as soon as they are ready; blank lines stay blank. The answer to a single
    argument may have several lines.
    """
    import regard

    if texts and file:
        raise DataError(f"texts and --file {file} are both given; give one of them")
    if out is not None and not embed:
        raise DataError(f"--out {out}: only vectors (--embed) are written to a file; redirect answers with >")
    answers_only: dict[str, object] = {
        "--beam": beam,
        "--n-best": n_best,
        "--with": others,
        "--engine": engine != "builtin",
        "--int8": int8,
        "--set": settings,
        "--context": context,
        "--context-file": context_file,
        "--second": second,
    }
    given = partial(answering.given, run, file, encoding=encoding, columns=columns(where))
    if embed:
        embedding.refuse_others(answers_only | {"--entities": entities})
        read = given(("text",))
        asked = texts or (row.cells["text"] for row in read())
        embedding.write_vectors(run, asked, out, answering.count(texts, file, read))
        return
    if entities is not None:
        relating.refuse_others(answers_only)
        relating.write_relations(run, entities, texts or given(("text",))(), json=json)
        return
    search = search_settings(settings or ())
    search |= {name: value for name, value in (("beam", beam), ("n_best", n_best)) if value is not None}
    trained = regard.load(run, *(others or ()), engine=engine, int8=int8)
    about = beside(context, context_file, trained.task.inputs, encoding)
    about |= beside_second(second, trained.task.inputs)
    answering.write_answers(
        trained, given, texts, file, about, search, shows_engine=engine != "builtin", json=json
    )
