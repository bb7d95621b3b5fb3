import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli import console
from regard.cli import embed as embedding
from regard.cli import relate as relating
from regard.cli.arguments import Context, ContextFile, Others, Run, Second, Settings, search_settings
from regard.cli.chat import CHATTING, Chat
from regard.cli.texts import (
    beside,
    beside_second,
    file_settings,
    file_texts,
    is_blank,
    layout,
    only_left,
    tell_cut,
)
from regard.errors import DataError
from regard.plain import by_line, one_line, printable

if TYPE_CHECKING:
    from regard import Trained
    from regard.data.dialogue import Turns
    from regard.data.source import Asked
    from regard.tasks.task import Prediction


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
    context: Context = None,
    context_file: ContextFile = None,
    second: Second = None,
    encoding: Annotated[
        str | None, typer.Option(help="Of the file; by default that of the training data.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines: input, answer, scores.")] = False,
    beam: Annotated[
        int | None, typer.Option(metavar="N", help="Hypotheses kept while searching; 1 is greedy.")
    ] = None,
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
    from regard.data.source import file_format

    if texts and file:
        raise DataError(f"texts and --file {file} are both given; give one of them")
    if out is not None and not embed:
        raise DataError(f"--out {out}: only vectors (--embed) are written to a file; redirect answers with >")
    searching: dict[str, object] = {
        "--beam": beam,
        "--n-best": n_best,
        "--with": others,
        "--int8": int8,
        "--set": settings,
    }
    if embed:
        embedding.refuse_others(searching | {"--entities": entities})
        given = _given(run, file, ("text",), encoding)
        embedding.write_vectors(run, texts or map(str, given()), out, _count(texts, file, given))
        return
    if entities is not None:
        relating.refuse_others(searching)
        given = _given(run, file, ("text",), encoding)
        relating.write_relations(run, entities, texts or map(str, given()), json=json)
        return
    trained = regard.load(run, *(others or ()), engine=engine, int8=int8)
    by = trained.turns
    about = beside(context, context_file, trained.task.inputs, encoding)
    about |= beside_second(second, trained.task.inputs)
    left = [role for role in trained.task.inputs if role not in about]
    if file is None or file_format(file) == "text":
        only_left(trained.task.inputs, about)
    lines = _given(run, file, left, encoding, by)
    search = file_settings(file or "") | search_settings(settings or ())
    search |= {name: value for name, value in (("beam", beam), ("n_best", n_best)) if value is not None}
    if not json and "n_best" not in search and _has_one_answer(trained, search):
        search = {"scores": False} | search
    if engine != "builtin":
        console.line(f"answered by {trained.answered_by(**search)}", "dim", console=console.ERR)
    typed = not texts and file is None and sys.stdin.isatty()
    chat = Chat() if typed and by is not None else None
    if typed:
        said = "One text a line; end with Ctrl-D." if chat is None else CHATTING
        console.line(said, "dim", console=console.ERR)
    asked = _with(texts or (lines() if chat is None else chat.asking(map(str, lines()))), left, about)
    total = _count(texts, file, lines)
    cut = windowed = 0
    shows = typed and sys.stdout.isatty() and not json
    live = shows and engine == "builtin" and _has_one_answer(trained, search)
    ranked, alone = "n_best" in search, total == 1 and file is None
    with console.progress("predicting", total, shown=file is not None and not sys.stdout.isatty()) as tick:
        for number, (text, answer) in enumerate(_answers(trained, asked, search, typed, live), 1):
            if chat is not None:
                chat.hear(answer)
            if json:
                console.write_json({"input": text, "text": ""} | (answer.to_json() if answer else {}))
            elif not live:
                _write(number, answer, ranked=ranked, alone=alone)
            sys.stdout.flush()
            cut += answer is not None and answer.cut
            windowed += getattr(answer, "windows", 1) > 1
            tick(1)
    tell_cut(trained, cut, windowed)


def _given(
    run: Path, file: str | None, roles: Sequence[str], encoding: str | None, by: "Turns | None" = None
) -> "Callable[[], Iterator[Asked]]":
    """The texts of the file, or of standard input."""
    if file is not None:
        return partial(file_texts, file, *layout(run, file, roles, encoding), by)
    return partial(_typed_texts, encoding or "utf-8")


def _with(texts: "Iterable[Asked]", left: Sequence[str], about: dict[str, str]) -> "Iterable[Asked]":
    """Each beside what all of them are about."""
    if not about:
        return texts
    return ((dict.fromkeys(left, text) if isinstance(text, str) else {**text}) | about for text in texts)


def _count(texts: list[str] | None, file: str | None, lines: Callable[[], Iterator[Any]]) -> int | None:
    """How many there are, where that can be known before."""
    return len(texts) if texts else sum(1 for _ in lines()) if file else None


def _typed_texts(encoding: str) -> Iterator[str]:
    from regard.data.lines import stream_lines

    return stream_lines(sys.stdin.buffer, "standard input", encoding=encoding)


def _answers(
    trained: "Trained", texts: "Iterable[Asked]", search: dict[str, Any], one_by_one: bool, live: bool = False
) -> "Iterator[tuple[Asked, Prediction | None]]":
    """Each text with its answer, None for a blank one; somebody who types gets each answer at once.

    Live, it is also shown here, while it is being written.
    """
    if live or one_by_one:
        ask = _asking(trained, search, live)
        return ((text, None if is_blank(text) else ask(text)) for text in texts)
    asked, kept = tee(texts)
    answered = zip(kept, trained.stream(asked, **search), strict=True)
    return ((text, None if is_blank(text) else answer) for text, answer in answered)


def _asking(trained: "Trained", search: dict[str, Any], live: bool) -> "Callable[[Asked], Prediction]":
    if live:
        return lambda text: _shown(trained.follow(text, **search))
    return lambda text: trained.predict(text, **search)


def _has_one_answer(trained: "Trained", search: dict[str, Any]) -> bool:
    config = trained.task_config
    decode = getattr(config, "decode", None)
    return decode is not None and decode.n_best == 1 and "n_best" not in search


def _shown(telling: Generator[str, None, "Prediction"]) -> "Prediction":
    """The answer, on the terminal while it is being written."""
    shown = ""
    while True:
        try:
            said = by_line(printable, next(telling))
        except StopIteration as found:
            sys.stdout.write("\n")
            answer: Prediction = found.value
            return answer
        sys.stdout.write(said.removeprefix(shown) if said.startswith(shown) else f"\n{said}")
        sys.stdout.flush()
        shown = said


def _write(number: int, answer: "Prediction | None", *, ranked: bool, alone: bool = False) -> None:
    """A line into files and pipes, unless it is the only one; on a terminal nothing that it would obey."""
    clean: Callable[[str], str] = printable if sys.stdout.isatty() else one_line
    if alone and not ranked:
        clean = partial(by_line, clean)
    if answer is None or not ranked:
        sys.stdout.write(clean(answer.text if answer else "") + "\n")
        return
    best = answer.to_json()
    for each in (best, *best.get("others", ())):
        sys.stdout.write(f"{number}\t{each['score']}\t{clean(each['text'])}\n")
