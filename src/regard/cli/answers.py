"""What `regard predict` writes: an answer to every text, a line each or as JSON, as soon as it is ready."""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli import console
from regard.cli.chat import CHATTING, Chat
from regard.cli.texts import asks, file_rows, is_blank, layout, numbered, only_left, tell_cut, typed_value
from regard.errors import DataError
from regard.text.plain import by_line, one_line, printable

if TYPE_CHECKING:
    from regard import Trained
    from regard.fields.field import Field
    from regard.files.columns import Column
    from regard.files.row import Row
    from regard.tasks.task import Prediction

Given = Callable[..., "Callable[[], Iterator[Row]]"]
STDIN = "standard input"


def write_answers(
    trained: "Trained",
    given: Given,
    texts: list[str] | None,
    file: str | None,
    about: dict[str, str],
    search: dict[str, Any],
    *,
    shows_engine: bool,
    json: bool,
) -> None:
    """`given` has the texts of a file or of standard input, for the roles that are not in `about`."""
    from regard.files.formats import file_format

    left = [role for role in trained.task.inputs if role not in about]
    if file is None or file_format(file) == "text":
        only_left(trained.task.inputs, about)
    rows = given(left, fields=trained.task_config.unfitted)
    if not json and "n_best" not in search and _has_one_answer(trained, search):
        search = {"scores": False} | search
    if shows_engine:
        console.line(f"engine: {trained.answered_by(**search)}", "dim", console=console.ERR)
    typed = not texts and file is None and sys.stdin.isatty()
    chat = Chat() if typed and trained.task.kind == "dialogue" else None
    if typed:
        said = "One text a line; end with Ctrl-D." if chat is None else CHATTING
        console.line(said, "dim", console=console.ERR)
    if texts and left[0] in trained.task_config.asked:
        lines: Iterable[Row] = trained.task.asked([typed_value(trained, left[0], text) for text in texts])
    else:
        lines = numbered(texts, "input", *left) if texts else rows()
    if chat is not None:
        lines = numbered(chat.asking(text for row in lines for text in row.cells.values()), STDIN, *left)
    asked = _with(lines, about)
    total = count(texts, file, rows)
    cut = windowed = 0
    shows = typed and sys.stdout.isatty() and not json
    live = shows and not shows_engine and _has_one_answer(trained, search)
    ranked, alone = "n_best" in search, total == 1 and file is None
    with console.progress("predicting", total, shown=file is not None and not sys.stdout.isatty()) as tick:
        for number, (row, answer) in enumerate(_answers(trained, asked, search, typed, live), 1):
            if chat is not None:
                chat.hear(answer)
            if json:
                console.write_json({"input": asks(row), "text": ""} | (answer.to_json() if answer else {}))
            elif not live:
                _write(number, answer, ranked=ranked, alone=alone)
            sys.stdout.flush()
            cut += answer is not None and answer.cut
            windowed += getattr(answer, "windows", 1) > 1
            tick(1)
    tell_cut(trained, cut, windowed)


def given(
    run: Path,
    file: str | None,
    roles: Sequence[str],
    encoding: str | None,
    fields: "Mapping[str, Field] | None" = None,
    columns: "dict[str, Column] | None" = None,
) -> "Callable[[], Iterator[Row]]":
    """The texts of the file, or of standard input."""
    if file is not None:
        return partial(file_rows, file, *layout(run, file, roles, encoding, columns), fields)
    if columns:
        raise DataError("--columns: only a file (--file) has any; leave it out")
    return partial(_typed_rows, roles[0], encoding or "utf-8")


def _with(rows: "Iterable[Row]", about: dict[str, str]) -> "Iterable[Row]":
    """Each beside what all of them are about."""
    return (replace(row, cells=row.cells | about) for row in rows) if about else rows


def count(texts: list[str] | None, file: str | None, lines: Callable[[], Iterator[Any]]) -> int | None:
    """How many there are, where that can be known before."""
    return len(texts) if texts else sum(1 for _ in lines()) if file else None


def _typed_rows(role: str, encoding: str) -> "Iterator[Row]":
    from regard.files.lines import stream_lines

    return numbered(stream_lines(sys.stdin.buffer, STDIN, encoding=encoding), STDIN, role)


def _answers(
    trained: "Trained", rows: "Iterable[Row]", search: dict[str, Any], one_by_one: bool, live: bool = False
) -> "Iterator[tuple[Row, Prediction | None]]":
    """Each row with its answer, None for a blank one; somebody who types gets each answer at once.

    Live, it is also shown here, while it is being written.
    """
    if live or one_by_one:
        ask = _asking(trained, search, live)
        return ((row, None if is_blank(row) else ask(row)) for row in rows)
    asked, kept = tee(rows)
    answered = zip(kept, trained.stream(asked, **search), strict=True)
    return ((row, None if is_blank(row) else answer) for row, answer in answered)


def _asking(trained: "Trained", search: dict[str, Any], live: bool) -> "Callable[[Row], Prediction]":
    if live:
        return lambda row: _shown(trained.follow(row, **search))
    return lambda row: next(trained.stream([row], **search))


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
        sys.stdout.write(f"{number}\t{each.get('score', '')}\t{clean(each['text'])}\n")
