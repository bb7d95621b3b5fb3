"""Files → rows, lazily: aligned text files, TSV, CSV, JSON lines, CoNLL, SQuAD, each plain or `.gz`; Parquet.

The suffix decides the format (formats.py), and READERS which function reads it. A path may be a pattern for
many files (`part-*.tsv.gz`), read in the order of their names. A column is a name or a number counted from 1.
A TSV or CSV file has a header if, and only if, some column is given by name, or a cell of its first line is
the name of a wanted role or one of its SYNONYMS (columns.py).
A role whose column is not given takes the column named like it; without a header, the first column that no
other role claims. Plain text files beside one another are the columns of one table.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from regard.errors import DataError
from regard.files import conll, parquet, semeval, squad
from regard.files.columns import Column, cell_places, column_name, named_like
from regard.files.documents import By, documents
from regard.files.formats import aligned_cells, file_cells, file_format, file_objects, text_cell
from regard.files.lines import Refuse, expand, lines, refuse_at_once, resolve
from regard.files.row import Row


class Cells(Protocol):
    """What a reader must know of a field: how a cell of it is cleaned, and whether it may be missing."""

    @property
    def optional(self) -> bool:
        """Whether a file may have no such column."""

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Any:
        """The cell as a row keeps it; DataError with `where` and the column's name if it is none.

        `folder` is that of the file, which paths in cells start from.
        """


class TextCells:
    """Cells of text, as any column has that no field speaks for."""

    optional = False

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> str:
        return text_cell(where, name, cell)


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    columns: Mapping[str, Column | None]
    """Wanted roles, each with its column; None where the file shall tell."""
    fields: Mapping[str, Cells] = field(default_factory=dict)
    """What cells of a role are, where they are not just text."""
    encoding: str = "utf-8"
    base: Path | None = None
    """The folder that relative paths start from."""
    documents: By | None = None
    """What a document of plain text is, for a task that reads documents; their white space is kept."""
    refuse: Refuse = refuse_at_once

    def lines(self, file: str) -> Iterator[str]:
        return lines(file, encoding=self.encoding, base=self.base, refuse=self.refuse)

    def field(self, role: str) -> Cells:
        return self.fields.get(role, _TEXT)

    def wanted(self, names: Sequence[str]) -> dict[str, Column | None]:
        """The roles to look for among these columns: an optional one only if it is there."""
        return {
            role: column
            for role, column in self.columns.items()
            if column is not None or not self.field(role).optional or named_like(role, names)
        }

    def cells(
        self, file: str, where: str, cells: Mapping[str, object], names: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """The cleaned cells of a record; None if one of them was refused."""
        try:
            folder = _folder(self.base, file)
            return {
                role: self.field(role).clean(cell, where, names[role], folder) for role, cell in cells.items()
            }
        except DataError as fault:
            self.refuse(fault)
            return None


_TEXT = TextCells()


@lru_cache(16)
def _folder(base: Path | None, file: str) -> Path:
    return (base or Path()) / Path(file).parent


def read_rows(
    paths: Sequence[str],
    columns: Mapping[str, Column | None],
    *,
    fields: Mapping[str, Cells] | None = None,
    encoding: str = "utf-8",
    base: Path | None = None,
    documents: By | None = None,
    refuse: Refuse = refuse_at_once,
) -> Iterator[Row]:
    """Yields the rows of aligned text files (one per role), or of files of records, one after another.

    Empty cells are for the task to judge.
    """
    reading = Reading(columns, fields or {}, encoding, base, documents, refuse)
    if not paths:
        raise DataError(f"no data files are given for {', '.join(columns)}")
    plain = [path for path in paths if file_format(path) == "text"]
    if plain and len(plain) < len(paths):
        raise DataError(f"{plain[0]}: plain text cannot be mixed with files of records ({', '.join(paths)})")
    found = [expand(path, base) for path in paths]
    needed = [role for role in columns if not reading.field(role).optional]
    if plain and len(columns) > 1 and not (len(needed) == 1 == len(paths)):
        if len(paths) != len(columns):
            for file in chain.from_iterable(found):
                resolve(file, base)
            raise DataError(
                f"{', '.join(paths)}: plain text needs one file for each of {', '.join(columns)}, "
                f"but the number of files is {len(paths)}"
            )
        for files in _shards(paths, found):
            cells = aligned_cells(files, [reading.lines(file) for file in files], refuse)
            yield from _table(files[0], cells, reading)
        return
    for file in chain.from_iterable(found):
        row: Row | None = None
        for row in READERS[file_format(file)](file, reading):
            yield row
        if row is None:
            nothing = "questions" if file_format(file) == "squad" else "records, only a header or blank lines"
            raise DataError(f"{file}: holds no {nothing}")


def word_where(row: Row, place: int) -> str:
    """Where a word stands: on a line of its own in CoNLL, unless there may be other lines between."""
    by_line = file_format(row.file) == "conll" and not conll.is_universal(row.file)
    return f"{row.file}:{row.line + place}" if by_line else f"{row.where}, word {place + 1}"


def first_cells(path: str, encoding: str) -> list[str]:
    """Of a table: its header, or its first row."""
    file = expand(path)[0]
    _, cells = next(file_cells(file, lines(file, encoding=encoding)), (0, []))
    return [cell.strip() for cell in cells]


def _shards(paths: Sequence[str], found: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """The files that belong together: the first of every pattern, then the second of every pattern."""
    counts = [len(files) for files in found]
    if len(set(counts)) > 1:
        told = ", ".join(f"{path} matches {n}" for path, n in zip(paths, counts, strict=True))
        raise DataError(f"{told} files: every side needs as many, in the same order")
    return zip(*found, strict=True)


_QUOTING = {
    "csv": 'a text that contains a comma must stand in "quotes"',
    "tsv": "a text cannot contain a tab",
    "text": "",
}


def _text_rows(file: str, reading: Reading) -> Iterator[Row]:
    """Plain text: documents, where a task reads such, else a record per line."""
    if reading.documents is None:
        yield from _table_rows(file, reading)
        return
    (role,) = reading.columns
    for line, part in documents(reading.lines(file), reading.documents):
        yield Row({role: part}, file, line)


def _table_rows(file: str, reading: Reading) -> Iterator[Row]:
    return _table(file, file_cells(file, reading.lines(file)), reading)


def _table(file: str, table: Iterator[tuple[int, list[str]]], reading: Reading) -> Iterator[Row]:
    columns, refuse = reading.columns, reading.refuse
    first = next(table, None)
    if first is None:
        return
    names = [cell.strip() for cell in first[1]]
    has_header = file_format(file) != "text" and any(
        isinstance(column, str) or named_like(role, names) for role, column in columns.items()
    )
    if has_header or len(names) == 1:
        columns = reading.wanted(names)
    places = cell_places(file, columns, names if has_header else None)
    width = max(places.values(), default=0) + 1
    most = max(width, len(names))
    for line, cells in table if has_header else chain([first], table):
        if len(cells) < width:
            between = {"tsv": "a tab", "csv": "a comma"}.get(file_format(file), "a line end")
            refuse(
                DataError(
                    f"{file}:{line}: {len(cells)} cell{'s' * (len(cells) > 1)} found, {width} needed; "
                    f"{between} must stand between cells"
                )
            )
            continue
        if len(cells) > most:
            refuse(
                DataError(
                    f"{file}:{line}: {len(cells)} cells found, the first line has {most}; "
                    f"{_QUOTING[file_format(file)]}"
                )
            )
            continue
        raw = {role: cells[place].strip() for role, place in places.items()}
        cleaned = reading.cells(file, f"{file}:{line}", raw, {role: role for role in raw})
        if cleaned is not None:
            yield Row(cleaned, file, line)


def _json_rows(file: str, reading: Reading) -> Iterator[Row]:
    return _object_rows(file, file_objects(file, reading.lines(file), reading.refuse), reading)


def _parquet_rows(file: str, reading: Reading) -> Iterator[Row]:
    return _object_rows(file, parquet.objects(file, reading.base, partial(_names, file, reading)), reading)


def _object_rows(
    file: str, objects: Iterable[tuple[int, dict[str, object]]], reading: Reading
) -> Iterator[Row]:
    for line, record in objects:
        where = f"{file}:{line}"
        try:
            names = _names(where, reading, list(record))
        except DataError as fault:
            reading.refuse(fault)
            continue
        cells = reading.cells(file, where, {role: record[name] for role, name in names.items()}, names)
        if cells is not None:
            yield Row(cells, file, line)


def _names(where: str, reading: Reading, known: Sequence[str]) -> dict[str, str]:
    """The column of every role in a file that names its columns."""
    wanted = reading.wanted(known)
    names = {role: column_name(where, role, column, known) for role, column in wanted.items()}
    if twice := [name for name in names.values() if known.count(name) > 1]:
        raise DataError(f"{where}: several columns are named {twice[0]}; rename all but one")
    return names


def _sentence_rows(file: str, reading: Reading) -> Iterator[Row]:
    for role, column in reading.columns.items():
        if role not in conll.USUAL:
            raise DataError(f"{file}: holds words and their tags, no {role}; is the task right?")
        if isinstance(column, str):
            raise DataError(f"{file}: its columns have no names; give the number of the {role}")
        if column is not None and column < 1:
            raise DataError(f"{file}: column {column} for {role} does not exist; columns count from 1")
    numbers = {role: column for role, column in reading.columns.items() if not isinstance(column, str)}
    for line, cells in conll.sentences(file, reading.lines(file), numbers, reading.refuse):
        yield Row(dict(cells), file, line)


def _relation_rows(file: str, reading: Reading) -> Iterator[Row]:
    records = semeval.records(file, reading.lines(file), reading.columns, reading.refuse)
    return (Row(dict(cells), file, line) for line, cells in records)


def _question_rows(file: str, reading: Reading) -> Iterator[Row]:
    for role, column in reading.columns.items():
        if role not in squad.ROLES:
            raise DataError(
                f"{file}: a .json file holds questions with contexts and answers, as SQuAD does, no {role}; "
                "JSON lines have a name that ends in .jsonl"
            )
        if column is not None:
            raise DataError(f"{file}: the {role} has its place in SQuAD's files; leave out its column")
    questions = squad.questions(file, encoding=reading.encoding, base=reading.base, refuse=reading.refuse)
    for number, (name, raw) in enumerate(questions, 1):
        wanted = {role: raw[role] for role in reading.columns}
        cells = reading.cells(
            file, f"{file}: question {name}", wanted, {role: f"its {role}" for role in wanted}
        )
        if cells is not None:
            yield Row(cells, file, number, name)


Reader = Callable[[str, Reading], Iterator[Row]]
READERS: dict[str, Reader] = {
    "text": _text_rows,
    "tsv": _table_rows,
    "csv": _table_rows,
    "jsonl": _json_rows,
    "parquet": _parquet_rows,
    "conll": _sentence_rows,
    "semeval": _relation_rows,
    "squad": _question_rows,
}
"""By format (formats.py): the function that reads one such file."""
