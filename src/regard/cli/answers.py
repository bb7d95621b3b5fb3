"""Answers of `regard predict`: a line or a JSON object for each input as soon as it is ready, or a table."""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli import console
from regard.cli.chat import CHATTING, Chat
from regard.cli.files import free, write
from regard.cli.question import needed, ways
from regard.cli.rows import (
    STDIN,
    are_interactions,
    asks,
    file_rows,
    history_rows,
    is_blank,
    layout,
    line_rows,
    report_cut,
)
from regard.cli.table import Table, joined, listed
from regard.errors import DataError
from regard.files.row import side_by_side
from regard.text.sanitize import by_line, one_line, printable

if TYPE_CHECKING:
    from regard import Trained
    from regard.fields.field import Field
    from regard.files.columns import Column
    from regard.files.interactions import Grouping
    from regard.files.measurements import Measured
    from regard.files.row import Row
    from regard.tasks.task import Prediction


@dataclass(frozen=True)
class Source:
    """Source of the inputs: the command line, a file, standard input."""

    run: Path
    fields: "Mapping[str, Field]"
    typed: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Cells of the command line, by the name of their input."""
    file: str | None = None
    columns: "Mapping[str, Column] | None" = None
    encoding: str | None = None
    measured: "Measured | None" = None
    """Meaning of the columns of a file whose rows are moments."""
    grouping: "Grouping | None" = None
    """Settings by which interactions become histories."""

    @property
    def left(self) -> list[str]:
        """The inputs that the command line does not name."""
        return [name for name in self.fields if name not in self.typed]

    @property
    def is_typed(self) -> bool:
        return self.file is None and not self.left

    @property
    def is_terminal(self) -> bool:
        """True if somebody types the inputs one by one."""
        return self.file is None and bool(self.left) and sys.stdin.isatty()

    def check(self) -> None:
        """DataError unless every input comes from somewhere."""
        from regard.files.formats import file_format

        if self.columns and self.file is None:
            raise DataError("--column: only a file (--file) has columns; leave it out")
        if self.file is not None and not self.left:
            raise DataError(f"the inputs and --file {self.file} are both given; give one of them")
        if len(self.left) > 1 and (self.file is None or file_format(self.file) == "text"):
            raise DataError(
                f"{needed(self.fields)}; give {ways(self.left[1:])}, "
                "or a file with a column for each (--file)"
            )
        if self.left and any(len(cells) > 1 for cells in self.typed.values()):
            raise DataError("an input that stands beside many others can be given only once")

    def count(self) -> int | None:
        """Count the questions, if that can be known before."""
        if self.is_typed:
            return max(map(len, self.typed.values()))
        return None if self.file is None else sum(1 for _ in self._read())

    def rows(self, asked: "Callable[[Iterable[Any]], list[Row]]") -> "Iterator[Row]":
        """The questions; `asked` makes rows of what was typed."""
        if self.is_typed:
            return iter(asked(side_by_side(self.typed)))
        if not self.typed:
            return self._read()
        (constant,) = asked([{name: cells[0] for name, cells in self.typed.items()}])
        return (replace(row, cells=row.cells | constant.cells) for row in self._read())

    def _read(self) -> "Iterator[Row]":
        from regard.files.lines import stream_lines

        if self.file is not None:
            if self.grouping and are_interactions(self.run, self.file, self.encoding or "utf-8"):
                return history_rows(self.run, self.file, self.grouping, self.encoding, self.columns)
            columns, encoding = layout(self.run, self.file, self.left, self.encoding, self.columns)
            return file_rows(self.file, columns, encoding, self.fields, self.measured)
        lines = stream_lines(sys.stdin.buffer, STDIN, encoding=self.encoding or "utf-8")
        return line_rows(lines, STDIN, self.left[0], self.fields)


@dataclass(frozen=True)
class Form:
    """Form that answers are printed in."""

    json: bool = False
    top: int | None = None
    """Number of answers each input gets, where the command line says so."""
    shows_engine: bool = False


def write_answers(trained: "Trained", source: Source, search: dict[str, Any], form: Form) -> None:
    """Prints the answers in the order of the inputs."""
    source.check()
    if not form.json and form.top is None and _has_scores(trained) and _has_one_answer(trained, search):
        search = {"scores": False} | search
    if form.shows_engine:
        console.line(f"engine: {trained.answered_by(**search)}", "dim", console=console.ERR)
    typing = source.is_terminal
    chat = Chat() if typing and trained.task.converses else None
    if typing:
        hint = "One input a line; end with Ctrl-D." if chat is None else CHATTING
        console.line(hint, "dim", console=console.ERR)
    rows = source.rows(partial(asked, trained, source))
    if chat is not None:
        rows = chat.asking(rows)
    total = source.count()
    live = (
        typing
        and sys.stdout.isatty()
        and not (form.json or form.shows_engine)
        and _has_one_answer(trained, search)
    )
    alone = total == 1 and source.is_typed
    counted = Counted(trained)
    with console.progress(
        "predicting", total, shown=source.file is not None and not sys.stdout.isatty()
    ) as tick:
        for number, (row, answer) in enumerate(answers(trained, rows, search, typing, live), 1):
            if chat is not None:
                chat.hear(answer)
            if form.json:
                console.write_json({"input": asks(row), "text": ""} | (answer.to_json() if answer else {}))
            elif not live:
                _write(number, answer, top=form.top, alone=alone)
            sys.stdout.flush()
            counted.add(answer)
            tick(1)
    counted.report()


def write_table(trained: "Trained", source: Source, search: dict[str, Any], form: Form, out: Path) -> None:
    """Writes the columns of the input file and those of the answers to a file, whole or not at all."""
    source.check()
    if source.file is None:
        raise DataError(f"--out {out}: a table is written of a file's rows; name it with --file")
    table = Table.named(out, source.file)
    rows = source.rows(partial(asked, trained, source))
    counted = Counted(trained)
    with console.progress("predicting", source.count()) as tick:

        def answered() -> "Iterator[tuple[Row, Prediction | None]]":
            for row, answer in answers(trained, rows, search, one_by_one=False):
                counted.add(answer)
                tick(1)
                yield row, answer

        if trained.task.lists:
            n = table.write(listed(answered(), source.fields))
        else:
            columns, encoding = layout(source.run, source.file, source.left, source.encoding, source.columns)
            n = table.write(joined(answered(), source.file, columns, encoding, form.top or 1))
    console.line(f"wrote {out}: {n:,} rows")
    counted.report()


def write_tables(trained: "Trained", source: Source, search: dict[str, Any], out: Path | None) -> None:
    """Writes the tables that answers are, one below the other, and a drawing of each beside them."""
    from regard.explain.curves import draw

    source.check()
    table = Table.named(out or free(f"{trained.task.kind}.csv"), source.file or "")
    rows = source.rows(partial(asked, trained, source))
    drawings: list[tuple[Path, str]] = []
    counted = Counted(trained)

    def answered() -> "Iterator[dict[str, Any]]":
        for _, answer in answers(trained, rows, search, one_by_one=False):
            if answer is None:
                continue
            counted.add(answer)
            console.line(answer.text)
            drawing = answer.drawing()
            if drawing is not None and len(drawings) < MOST_DRAWN:
                suffix = f"-{len(drawings) + 1}" * bool(drawings)
                path = table.path.with_name(f"{table.path.stem}{suffix}.svg")
                drawings.append((path if out else free(str(path)), draw(drawing)))
            yield from answer.rows() or ()

    n = table.write(answered())
    for path, drawing in drawings:
        write(path, drawing)
    console.line(f"wrote {table.path}: {n:,} rows; {', '.join(str(path) for path, _ in drawings)}")
    counted.report()


MOST_DRAWN = 100
"""Answers that are drawn."""


def asked(trained: "Trained", source: Source, questions: Iterable[Any]) -> "list[Row]":
    """Rows of what was typed; of inputs that stand beside those of a file, no whole question."""
    from regard.files.row import rows_of

    if source.is_typed:
        return trained.task.asked(questions)
    return rows_of(questions, *source.typed, fields=source.fields)


@dataclass
class Counted:
    """Counts of inputs that were too long, and of those of which nothing was known."""

    trained: "Trained"
    cut: int = 0
    windowed: int = 0
    unlisted: int = 0

    def add(self, answer: "Prediction | None") -> None:
        self.unlisted += self.trained.task.lists and answer is not None and not answer.rows()
        self.cut += answer is not None and answer.cut
        self.windowed += getattr(answer, "windows", 1) > 1

    def report(self) -> None:
        report_cut(self.trained, self.cut, self.windowed)
        if self.unlisted:
            nothing = f"nothing is recommended for {self.unlisted:,} of the histories"
            why = "they hold no item of the training data, or all there are"
            console.line(f"{nothing}: {why}", "dim", console=console.ERR)


def answers(
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


def _has_scores(trained: "Trained") -> bool:
    """True if scores cost something, so that they can be left out."""
    return hasattr(getattr(trained.task_config, "decode", None), "scores")


def _has_one_answer(trained: "Trained", search: dict[str, Any]) -> bool:
    decode = getattr(trained.task_config, "decode", None)
    return decode is not None and decode.n_best == 1 and "n_best" not in search


def _shown(beginnings: Generator[str, None, "Prediction"]) -> "Prediction":
    """The answer, on the terminal while it is being written."""
    written = ""
    while True:
        try:
            text = by_line(printable, next(beginnings))
        except StopIteration as end:
            sys.stdout.write("\n")
            answer: Prediction = end.value
            return answer
        sys.stdout.write(text.removeprefix(written) if text.startswith(written) else f"\n{text}")
        sys.stdout.flush()
        written = text


def _write(number: int, answer: "Prediction | None", *, top: int | None, alone: bool = False) -> None:
    """A line into files and pipes, unless it is the only one; on a terminal nothing that it would obey."""
    clean: Callable[[str], str] = printable if sys.stdout.isatty() else one_line
    if alone and top is None:
        clean = partial(by_line, clean)
    if answer is None or top is None:
        sys.stdout.write(clean(answer.text if answer else "") + "\n")
        return
    for text, score in answer.ranked()[:top]:
        sys.stdout.write(f"{number}\t{'' if score is None else round(score, 4)}\t{clean(text)}\n")
