"""Rows to answer: of files, read as the run's own data is laid out, and of lines."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import console
from regard.errors import DataError
from regard.files.row import text_of

if TYPE_CHECKING:
    from regard import Trained
    from regard.fields.field import Field
    from regard.files.columns import Column
    from regard.files.interactions import Grouping
    from regard.files.measurements import Measured
    from regard.files.row import Asked, Row

STDIN = "standard input"


def layout(
    run: Path,
    file: str,
    roles: Sequence[str],
    encoding: str | None,
    columns: "Mapping[str, Column] | None" = None,
) -> "tuple[dict[str, Column | None], str]":
    """The column of each role and the encoding: as the caller says, else as in the run's recipe."""
    from regard.recipe import Recipe, laid_out

    path = run / "recipe.json"
    data = Recipe.read(path).data if path.is_file() else None
    return laid_out(data, file, roles, columns, encoding)


def file_rows(
    file: str,
    columns: "dict[str, Column | None]",
    encoding: str,
    fields: "Mapping[str, Field]",
    measured: "Measured | None" = None,
) -> "Iterator[Row]":
    """Rows with a cell for each of these inputs; a file of plain text has one a line."""
    from regard.files.formats import file_format
    from regard.files.lines import lines
    from regard.files.read import first_cells, read_rows

    if measured is not None:
        whole = replace(measured, whole=True)
        return read_rows([file], columns, fields=fields, encoding=encoding, measured=whole)
    if file_format(file) == "text" and len(columns) == 1:
        (name,) = columns
        return line_rows(lines(file, encoding=encoding), file, name, fields)
    if file_format(file) in ("csv", "tsv"):
        _refuse_guess(file, columns, first_cells(file, encoding), fields)
    return read_rows([file], columns, fields=fields, encoding=encoding)


def are_interactions(run: Path, file: str, encoding: str) -> bool:
    """True if a file holds single choices, as training data do, and not a history in each row."""
    from regard.files.columns import named_like
    from regard.files.formats import file_format
    from regard.files.records import records
    from regard.recipe import Recipe

    if file_format(file) == "text":
        path = run / "recipe.json"
        return path.is_file() and file_format(Recipe.read(path).data.train[0]) == "text"
    _, record = next(records(file, {"items": None}, encoding), (0, {}))
    return named_like("items", record) is None


def history_rows(
    run: Path,
    file: str,
    grouping: "Grouping",
    encoding: str | None,
    columns: "Mapping[str, Column] | None",
) -> "Iterator[Row]":
    """A row for each user of a file of interactions."""
    from regard.files.read import INTERACTION, read_rows

    places, encoding = layout(run, file, INTERACTION, encoding, columns)
    return read_rows([file], places, encoding=encoding, grouping=grouping)


def _refuse_guess(
    file: str, columns: "Mapping[str, Column | None]", names: Sequence[str], fields: "Mapping[str, Field]"
) -> None:
    """DataError where nothing tells which of several columns an input is."""
    from regard.files.columns import named_like

    for role, column in columns.items():
        if role in fields and fields[role].spread:
            continue
        if column is None and len(names) > len(columns) and named_like(role, names) is None:
            there = ", ".join("".join(filter(str.isprintable, name[:40])) for name in names[:20])
            raise DataError(
                f"{file}: no column is named {role} (there are: {there}); "
                f"say which it is with --column {role}=NAME, or {role}=1 for the first"
            )


def line_rows(lines: Iterable[str], file: str, name: str, fields: "Mapping[str, Field]") -> "Iterator[Row]":
    """A row of each line, typed as on a command line; a blank line stays blank."""
    from regard.files.row import Row

    for number, line in enumerate(lines, 1):
        cell = line
        if line.strip():
            cell = fields[name].clean(fields[name].typed(line, name), f"{file}:{number}", f"the {name}")
        yield Row({name: cell}, file, number)


def asks(row: "Row") -> "Asked":
    """The question of a row: its only cell, or all of them by their names."""
    first, *others = row.cells.values()
    return row.cells if others else first


def is_blank(row: "Row") -> bool:
    return not all(text_of(cell).strip() for cell in row.cells.values())


def report_cut(trained: "Trained", cut: int, windowed: int = 0) -> None:
    """Prints how many inputs were too long, and what became of them."""
    if windowed:
        many = "contexts were" if windowed > 1 else "contexts was"
        read = f"read in overlapping windows of {trained.task_config.max_length} tokens (task.max_length)"
        console.line(f"{windowed} of the {many} {read}", "dim", console=console.ERR)
    if cut:
        setting = trained.task.limit
        limit = f"longer than {getattr(trained.task_config, setting)} tokens (task.{setting})"
        fate = trained.task.cut
        console.line(f"{cut} of the texts {limit}: {fate}", "dim", console=console.ERR)


TextFile = Annotated[
    str | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Texts: one a line, or a file like the training data; or .gz."
    ),
]


def texts_of(
    run: Path,
    texts: Sequence[str] | None,
    file: str | None,
    columns: "Mapping[str, Column]",
    encoding: str | None,
    name: str,
    field: "Field",
) -> "tuple[Iterator[Row], int | None]":
    """Rows with a text each (or a cell of another field), of arguments, a file or standard input; and how
    many, where that is known.
    """
    from regard.files.lines import stream_lines

    fields = {name: field}
    if texts and file:
        raise DataError(f"texts and --file {file} are both given; give one of them")
    if columns and file is None:
        raise DataError("--column: only a file (--file) has columns; leave it out")
    if texts:
        return line_rows(texts, "input", name, fields), len(texts)
    if file is None:
        lines = stream_lines(sys.stdin.buffer, STDIN, encoding=encoding or "utf-8")
        return line_rows(lines, STDIN, name, fields), None
    place, encoding = layout(run, file, (name,), encoding, columns)
    return file_rows(file, place, encoding, fields), sum(1 for _ in file_rows(file, place, encoding, fields))
