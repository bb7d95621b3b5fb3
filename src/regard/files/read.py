"""Files → rows, lazily: aligned text files, TSV, CSV, .dat, JSON lines, CoNLL, SQuAD, .ts, .arff, each plain
or `.gz`; Parquet, .npy, .npz.

The suffix decides the format (formats.py), and READERS which function reads it. A path may be a pattern for
many files (`part-*.tsv.gz`), read in the order of their names. A column is a name or a number counted from 1.
A TSV or CSV file has a header if, and only if, some column is given by name, or a cell of its first line is
the name of a wanted role or one of its SYNONYMS (columns.py).
A role whose column is not given takes the column named like it; without a header, the first column that no
other role claims. Plain text files beside one another are the columns of one table.

For a task that reads histories, records in any files and any order make a row for each user: interactions.py.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Protocol

from regard.errors import DataError
from regard.files import captions, conll, parquet, semeval, squad
from regard.files.arrays import arrays, cell_of, moments, names_of, refuse_unequal
from regard.files.columns import Column, cell_places, column_name, named_like
from regard.files.documents import By, documents
from regard.files.folder import classified, label_in_name, unclassified
from regard.files.folder import files as files_below
from regard.files.formats import aligned_cells, file_cells, file_format, file_objects, text_cell
from regard.files.interactions import Grouping, Histories, Interaction, group
from regard.files.lines import Refuse, expand, lines, refuse_at_once, resolve
from regard.files.measurements import Measured, Stretch, is_word, stretches
from regard.files.row import Row
from regard.files.speech import is_kaldi, kaldi
from regard.files.ts import arff_records, ts_records

Record = Mapping[Any, object]
"""The raw cells of one record, by name or by number from 1."""
Labelled = Callable[[str, Iterator[str], Refuse], Iterator[tuple[int, Stretch, str | None]]]
"""The series of a file, each with its line and its label."""
CAPTIONS = "captions"
SERIES = "series"
"""The role that tables of measurements fill."""


class Cells(Protocol):
    """Part of a field that readers need: how a cell is cleaned, and whether it may be missing or a file."""

    suffixes: ClassVar[frozenset[str]]
    """Suffixes of the files that cells may be; none where they are no files."""
    spread: ClassVar[bool]
    """True if a table without a column for it has it in all columns that no other role takes."""

    @property
    def optional(self) -> bool:
        """True if a file may have no such column."""

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Any:
        """The cell as a row keeps it; DataError with `where` and the column's name if it is none.

        `folder` is that of the file, which paths in cells start from.
        """

    def gathered(self, cell: object, record: Mapping[str, object]) -> object:
        """The cell, with what other columns of its record say of it."""


class TextCells:
    """Cells of text, as any column has that no field speaks for."""

    optional = False
    suffixes: ClassVar[frozenset[str]] = frozenset()
    spread: ClassVar[bool] = False

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> str:
        return text_cell(where, name, cell)

    def gathered(self, cell: object, record: Mapping[str, object]) -> object:
        return cell


class OptionalText(TextCells):
    """Cells of text in a column that may be missing."""

    optional = True


@dataclass(frozen=True)
class Reading:
    """Settings by which files are read."""

    columns: Mapping[str, Column | None]
    """Wanted roles, each with its column; None where the file shall tell."""
    fields: Mapping[str, Cells] = field(default_factory=dict)
    """Fields of the roles whose cells are not just text."""
    encoding: str = "utf-8"
    base: Path | None = None
    """The folder that relative paths start from."""
    documents: By | None = None
    """Unit that is a document of plain text, for a task that reads documents; their white space is kept."""
    measured: Measured | None = None
    """Meaning of the columns of tables whose rows are moments of series."""
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

    def spread(self, names: Sequence[str]) -> str | None:
        """The role whose cells take all columns of a table that are left, if there is one."""
        spread = (role for role in self.columns if self.field(role).spread)
        free = (role for role in spread if self.columns[role] is None)
        return next((role for role in free if named_like(role, names) is None), None)

    def within(self, n_cells: int) -> dict[str, Column | None]:
        """The roles of a table without names: optional ones only if it has cells for all."""
        columns = dict(self.columns)
        for role, column in self.columns.items():
            if len(columns) > n_cells and column is None and self.field(role).optional:
                del columns[role]
        return columns

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
    measured: Measured | None = None,
    grouping: Grouping | None = None,
    refuse: Refuse = refuse_at_once,
) -> Iterator[Row]:
    """Yields the rows of aligned text files (one per role), or of files of records, one after another.

    Empty cells are for the task to judge.
    """
    if grouping is not None:
        grouped = histories(paths, columns, grouping, encoding=encoding, base=base, refuse=refuse)
        yield from grouped.rows(", ".join(paths))
        return
    reading = Reading(columns, fields or {}, encoding, base, documents, measured, refuse)
    if not paths:
        raise DataError(f"no data files are given for {', '.join(columns)}")
    plain = [path for path in paths if file_format(path) == "text"]
    if plain and len(plain) < len(paths):
        raise DataError(f"{plain[0]}: plain text cannot be mixed with files of records ({', '.join(paths)})")
    matches = [expand(path, base) for path in paths]
    if len(paths) == len(columns) > 1 and {file_format(path) for path in paths} <= {"idx", "npy"}:
        for files in _shards(paths, matches):
            yield from _records(dict(zip(columns, files, strict=True)), reading)
        return
    needed = [role for role in columns if not reading.field(role).optional]
    if plain and len(columns) > 1 and not (len(needed) == 1 == len(paths)):
        if len(paths) != len(columns):
            for file in chain.from_iterable(matches):
                resolve(file, base)
            raise DataError(
                f"{', '.join(paths)}: plain text needs one file for each of {', '.join(columns)}, "
                f"but the number of files is {len(paths)}"
            )
        for files in _shards(paths, matches):
            cells = aligned_cells(files, [reading.lines(file) for file in files], refuse)
            yield from _table(files[0], cells, reading)
        return
    for file in chain.from_iterable(matches):
        yield from _file_rows(file, reading)


def _file_rows(file: str, reading: "Reading") -> Iterator[Row]:
    row: Row | None = None
    for row in reader(file).rows(file, reading):
        yield row
    if row is None:
        nothing = "questions" if file_format(file) == "squad" else "records, only a header or blank lines"
        raise DataError(f"{file}: holds no {nothing}")


INTERACTION = ("user", "item", "rating", "time")
"""The roles of a record of an interaction, and the order of its columns where they have no names."""


def histories(
    paths: Sequence[str],
    columns: Mapping[str, Column | None],
    grouping: Grouping,
    *,
    encoding: str = "utf-8",
    base: Path | None = None,
    refuse: Refuse = refuse_at_once,
) -> Histories:
    """The histories in files of interactions; the same files are grouped once, and mapped from then on."""
    files = tuple(chain.from_iterable(expand(path, base) for path in paths))
    chosen = tuple((role, columns.get(role)) for role in INTERACTION)
    if refuse is not refuse_at_once:
        return _grouped(files, chosen, grouping, encoding, base, refuse)
    stamps = tuple(_stamp(resolve(file, base)) for file in files)
    return _grouped_once(files, stamps, chosen, grouping, encoding, base)


def _stamp(path: Path) -> tuple[Path, int, int]:
    """Stamp that differs between files, and between contents of a file."""
    status = path.stat()
    return path.absolute(), status.st_size, status.st_mtime_ns


@lru_cache(4)
def _grouped_once(
    files: tuple[str, ...],
    stamps: tuple[Any, ...],
    columns: tuple[tuple[str, Column | None], ...],
    grouping: Grouping,
    encoding: str,
    base: Path | None,
) -> Histories:
    return _grouped(files, columns, grouping, encoding, base, refuse_at_once)


def _grouped(
    files: Sequence[str],
    columns: Sequence[tuple[str, Column | None]],
    grouping: Grouping,
    encoding: str,
    base: Path | None,
    refuse: Refuse,
) -> Histories:
    optional = {"rating": OptionalText(), "time": OptionalText()}
    reading = Reading(dict(columns), optional, encoding, base, refuse=refuse)
    found = group(
        chain.from_iterable(_interactions(file, reading, grouping) for file in files), grouping, refuse
    )
    if not len(found):
        least = f"min_user {grouping.min_user}, min_item {grouping.min_item}"
        raise DataError(f"{', '.join(files)}: no history is left ({least}); lower what is asked of them")
    return found


def _interactions(file: str, reading: Reading, grouping: Grouping) -> Iterator[Interaction]:
    if file_format(file) == "text":
        for number, line in enumerate(reading.lines(file), 1):
            first, *rest = line.split() or [""]
            user, items = (first, rest) if grouping.lines == "user items" else (str(number), [first, *rest])
            for item in items:
                yield Interaction(user, item, None, None, f"{file}:{number}")
        return
    for row in _file_rows(file, reading):
        cells = row.cells
        yield Interaction(cells["user"], cells["item"], cells.get("time"), cells.get("rating"), row.where)


def word_where(row: Row, place: int) -> str:
    """Place of a word: a line of its own in CoNLL, unless there may be other lines between."""
    by_line = file_format(row.file) == "conll" and not conll.is_universal(row.file)
    return f"{row.file}:{row.line + place}" if by_line else f"{row.where}, word {place + 1}"


def first_cells(path: str, encoding: str) -> list[str]:
    """First cells of a table: its header, or its first row."""
    file = expand(path)[0]
    _, cells = next(file_cells(file, lines(file, encoding=encoding)), (0, []))
    return [cell.strip() for cell in cells]


def _shards(paths: Sequence[str], matches: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """The files that belong together: the first of every pattern, then the second of every pattern."""
    counts = [len(files) for files in matches]
    if len(set(counts)) > 1:
        counted = ", ".join(f"{path} matches {n}" for path, n in zip(paths, counts, strict=True))
        raise DataError(f"{counted} files: every side needs as many, in the same order")
    return zip(*matches, strict=True)


_QUOTING = {
    "csv": 'a text that contains a comma must stand in "quotes"',
    "tsv": "a text cannot contain a tab",
    "dat": "a text cannot contain ::",
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
    if reading.measured is not None:
        yield from _measured_rows(file, table, reading)
        return
    columns, refuse = reading.columns, reading.refuse
    first = next(table, None)
    if first is None:
        return
    names = [cell.strip() for cell in first[1]]
    if role := reading.spread(names):
        yield from _spread_rows(file, chain([first], table), reading, role)
        return
    has_header = file_format(file) != "text" and any(
        isinstance(column, str) or named_like(role, names) for role, column in columns.items()
    )
    columns = reading.wanted(names) if has_header or len(names) == 1 else reading.within(len(names))
    places = cell_places(file, columns, names if has_header else None)
    width = max(places.values(), default=0) + 1
    most = max(width, len(names))
    for line, cells in table if has_header else chain([first], table):
        if len(cells) < width:
            between = {"tsv": "a tab", "csv": "a comma", "dat": "::"}.get(file_format(file), "a line end")
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


def _spread_rows(
    file: str, table: Iterator[tuple[int, list[str]]], reading: Reading, spread: str
) -> Iterator[Row]:
    """A row of numbers, beside the columns of other roles: the first ones, where nothing else is said."""
    others = {role: column for role, column in reading.columns.items() if role != spread}
    first_line, first = next(table)
    has_header = sum(map(is_word, first)) > len(others) or any(
        isinstance(column, str) or named_like(role, first) for role, column in others.items()
    )
    places = cell_places(file, others, [cell.strip() for cell in first] if has_header else None)
    for line, cells in table if has_header else chain([(first_line, first)], table):
        if len(cells) <= max(places.values(), default=0):
            reading.refuse(
                DataError(f"{file}:{line}: {len(cells)} cells found; a label and numbers are needed")
            )
            continue
        raw: dict[str, object] = {role: cells[place].strip() for role, place in places.items()}
        raw[spread] = [cell for place, cell in enumerate(cells) if place not in places.values()]
        cleaned = reading.cells(file, f"{file}:{line}", raw, {role: role for role in raw})
        if cleaned is not None:
            yield Row(cleaned, file, line)


def _measured_rows(
    file: str,
    table: Iterator[tuple[int, Sequence[object]]],
    reading: Reading,
    names: Sequence[str] | None = None,
) -> Iterator[Row]:
    """Series, or stretches of them: many records → one row."""
    assert reading.measured is not None
    others = {role: column for role, column in reading.columns.items() if role != SERIES}
    for line, cells in stretches(file, table, reading.measured, others, names, reading.refuse):
        cleaned = reading.cells(file, f"{file}:{line}", cells, {role: role for role in cells})
        if cleaned is not None:
            yield Row(cleaned, file, line)


def _json_rows(file: str, reading: Reading) -> Iterator[Row]:
    return _object_rows(file, file_objects(file, reading.lines(file), reading.refuse), reading)


def _parquet_rows(file: str, reading: Reading) -> Iterator[Row]:
    def every(names: Sequence[str]) -> dict[str, str]:
        return {name: name for name in names}

    choose = partial(_names, file, reading) if reading.measured is None else every
    return _object_rows(file, parquet.objects(file, reading.base, choose), reading)


def _object_rows(
    file: str, objects: Iterable[tuple[int, dict[str, object]]], reading: Reading
) -> Iterator[Row]:
    if reading.measured is not None:
        yield from _measured_objects(file, objects, reading)
        return
    for line, record in objects:
        where = f"{file}:{line}"
        try:
            names = _names(where, reading, list(record))
        except DataError as fault:
            reading.refuse(fault)
            continue
        raw = {role: reading.field(role).gathered(record[name], record) for role, name in names.items()}
        cells = reading.cells(file, where, raw, names)
        if cells is not None:
            yield Row(cells, file, line)


def _measured_objects(
    file: str, objects: Iterable[tuple[int, dict[str, object]]], reading: Reading
) -> Iterator[Row]:
    """Records that name their columns, of which the first has all."""
    records = iter(objects)
    first = next(records, None)
    if first is None:
        return
    names = list(first[1])
    table = ((line, [record.get(name) for name in names]) for line, record in chain([first], records))
    yield from _measured_rows(file, table, reading, names)


def _labelled_rows(records: Labelled, file: str, reading: Reading) -> Iterator[Row]:
    """A series and its label: the formats of the UCR and UEA archives."""
    for role, column in reading.columns.items():
        if role not in (SERIES, "label"):
            raise DataError(f"{file}: holds series and their labels, no {role}; is the task right?")
        if column is not None:
            raise DataError(f"{file}: the {role} has its place in such a file; leave out its column")
    for line, series, label in records(file, reading.lines(file), reading.refuse):
        where = f"{file}:{line}"
        if label is None and "label" in reading.columns:
            raise DataError(f"{where}: its series have no labels (@classLabel); give a file that has them")
        both = {SERIES: series, "label": label}
        cells = {role: both[role] for role in reading.columns}
        cleaned = reading.cells(file, where, cells, {role: role for role in cells})
        if cleaned is not None:
            yield Row(cleaned, file, line)


def _array_rows(file: str, reading: Reading) -> Iterator[Row]:
    """A row of every array; or a series, of which an array has all steps."""
    by_name = arrays(file, reading.base)
    if reading.measured is not None:
        yield from _measured_rows(file, moments(file, by_name), reading)
        return
    yield from _records(dict.fromkeys(reading.columns, file), reading)


def _records(files: Mapping[str, str], reading: Reading) -> Iterator[Row]:
    """A row of the arrays of all roles, which are in one file or in one each."""
    opened = {file: arrays(file, reading.base) for file in dict.fromkeys(files.values())}
    names: dict[str, str] = {}
    for file, found in opened.items():
        here = {role: column for role, column in reading.columns.items() if files[role] == file}
        names |= names_of(file, found, here)
    chosen = {role: opened[files[role]][name] for role, name in names.items()}
    file = next(iter(opened))
    refuse_unequal(file, {names[role] if len(opened) == 1 else files[role]: chosen[role] for role in chosen})
    for role, array in chosen.items():
        if reading.field(role).suffixes and array.ndim < 2:
            raise DataError(
                f"{files[role]}: holds one number a record, which is no {role}; give "
                f"{' and '.join(files)} in this order"
            )
    for number in range(len(chosen[next(iter(files))])):
        cells = {
            role: {"array": Path(files[role]).name, "name": names[role], "index": number}
            if reading.field(role).suffixes
            else cell_of(array[number])
            for role, array in chosen.items()
        }
        cleaned = reading.cells(file, f"{file}:{number + 1}", cells, {role: role for role in cells})
        if cleaned is not None:
            yield Row(cleaned, file, number + 1)


def _folder_rows(file: str, reading: Reading) -> Iterator[Row]:
    """A row of every file in a folder, and of the folder's name where a label is wanted."""
    if is_kaldi(resolve(file, reading.base)):
        yield from _kaldi_rows(file, reading)
        return
    if CAPTIONS in reading.columns and (name := captions.caption_file(resolve(file, reading.base))):
        yield from _caption_rows(file + name, reading)
        return
    roles = [role for role in reading.columns if reading.field(role).suffixes]
    others = [role for role in reading.columns if role not in roles]
    if len(roles) != 1 or others not in ([], ["label"]):
        raise DataError(
            f"{file}: a folder holds files, and folders called like their labels; the task needs "
            f"{', '.join(reading.columns)}"
        )
    (role,) = roles
    folder, suffixes = resolve(file, reading.base), reading.field(role).suffixes
    every = classified(folder, file, suffixes) if others else unclassified(folder, file, suffixes)
    for path, label in every:
        cells = {role: Path(path).name} | ({"label": label} if others else {})
        cleaned = reading.cells(file + path, file + path, cells, {role: role for role in cells})
        if cleaned is not None:
            yield Row(cleaned, file + path, 0)


def _kaldi_rows(file: str, reading: Reading) -> Iterator[Row]:
    for inner, line, raw in kaldi(resolve(file, reading.base), file):
        where = f"{inner}:{line}"
        roles = {role for role in reading.columns if role in raw or not reading.field(role).optional}
        if missing := roles - raw.keys():
            raise DataError(
                f"{file}: a folder of Kaldi holds audio and text, no {', '.join(sorted(missing))}"
            )
        cells = {role: raw[role] for role in reading.columns if role in raw}
        cleaned = reading.cells(inner, where, cells, {role: role for role in cells})
        if cleaned is not None:
            yield Row(cleaned, inner, line)


def _names(where: str, reading: Reading, names_there: Sequence[str]) -> dict[str, str]:
    """The column of every role in a file that names its columns."""
    wanted = reading.wanted(names_there)
    names = {role: column_name(where, role, column, names_there) for role, column in wanted.items()}
    if twice := [name for name in names.values() if names_there.count(name) > 1]:
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


def _caption_rows(file: str, reading: Reading) -> Iterator[Row]:
    if not {"image", CAPTIONS} & reading.columns.keys():
        yield from _text_rows(file, reading)
        return
    folder = resolve(file, reading.base).parent
    yield from _described(file, captions.numbered(file, reading.lines(file), folder, reading.refuse), reading)


def _described(
    file: str, records: Iterator[tuple[int, dict[str, object]]], reading: Reading
) -> Iterator[Row]:
    """Pictures with captions, whose roles the file itself knows."""
    for role, column in reading.columns.items():
        if role not in ("image", CAPTIONS, "objects"):
            raise DataError(f"{file}: holds pictures and their captions, no {role}; is the task right?")
        if column is not None:
            raise DataError(f"{file}: the {role} has its place in such a file; leave out its column")
    for number, raw in records:
        wanted = {role: raw[role] for role in reading.columns if role in raw}
        cells = reading.cells(file, f"{file}:{number}", wanted, {role: f"its {role}" for role in wanted})
        if cells is not None:
            yield Row(cells, file, number)


def _json_document_rows(file: str, reading: Reading) -> Iterator[Row]:
    if {"image", CAPTIONS} & reading.columns.keys():
        found = captions.coco(file, encoding=reading.encoding, base=reading.base, refuse=reading.refuse)
        return _described(file, found, reading)
    return _question_rows(file, reading)


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


def _numbered(file: str, reading: Reading) -> Iterator[Record]:
    for _, cells in file_cells(file, reading.lines(file)):
        yield {number: cell.strip() for number, cell in enumerate(cells, 1)}


def _objects(file: str, reading: Reading) -> Iterator[Record]:
    return (record for _, record in file_objects(file, reading.lines(file)))


def _parquet_objects(file: str, reading: Reading) -> Iterator[Record]:
    objects = parquet.objects(file, reading.base, lambda names: {name: name for name in names})
    return (record for _, record in objects)


def _labelled_objects(records: Labelled, file: str, reading: Reading) -> Iterator[Record]:
    for _, series, label in records(file, reading.lines(file), reading.refuse):
        yield {SERIES: series} if label is None else {SERIES: series, "label": label}


def _array_objects(file: str, reading: Reading) -> Iterator[Record]:
    by_name = arrays(file, reading.base)
    for number in range(min(map(len, by_name.values()))):
        yield {name: cell_of(array[number]) for name, array in by_name.items()}


def _folder_objects(file: str, reading: Reading) -> Iterator[Record]:
    """Every file that is not hidden, and the folder it is in, or the label that its name begins with."""
    folder = resolve(file, reading.base)
    if name := captions.caption_file(folder):
        yield from _caption_objects(file + name, reading)
        return
    if is_kaldi(folder):
        for _, _, cells in kaldi(folder, file):
            audio = cells["audio"]
            yield cells | {"audio": audio if isinstance(audio, str) else audio["path"]}
        return
    for path in files_below(folder):
        label, _, rest = path.partition("/")
        named = label if rest else label_in_name(path)
        yield {"file": path, "label": named} if named else {"file": path}


def _caption_objects(file: str, reading: Reading) -> Iterator[Record]:
    folder = resolve(file, reading.base).parent
    return (cells for _, cells in captions.numbered(file, reading.lines(file), folder))


@dataclass(frozen=True)
class Reader:
    """Reader of one format."""

    rows: Callable[[str, Reading], Iterator[Row]]
    """The rows of one file, with a cell for every wanted role."""
    records: Callable[[str, Reading], Iterator[Record]] | None = None
    """Records of one file, as `regard init` looks at them before any role is known; None where the format
    itself says which task it is for. Where columns are numbers, the first record may be a header.
    """
    names_roles: bool = False
    """True if the format itself says which of these columns has which role, so that no recipe has to."""
    looks_like: Callable[[Iterator[str]], bool] | None = None
    """True if the lines of a file that is called otherwise are in this format."""
    like: str = ""
    """Look of such files, and how their names end."""


def _labelled(records: Labelled) -> Reader:
    return Reader(partial(_labelled_rows, records), partial(_labelled_objects, records), names_roles=True)


READERS: dict[str, Reader] = {
    "text": Reader(_text_rows, _numbered),
    "tsv": Reader(_table_rows, _numbered),
    "csv": Reader(_table_rows, _numbered),
    "dat": Reader(_table_rows, _numbered),
    "jsonl": Reader(_json_rows, _objects),
    "parquet": Reader(_parquet_rows, _parquet_objects),
    "conll": Reader(
        _sentence_rows,
        looks_like=conll.looks_like,
        like="CoNLL, a word and its tag a line; give it a name that ends in .conll",
    ),
    "semeval": Reader(
        _relation_rows,
        looks_like=semeval.looks_like,
        like="SemEval-2010 task 8, a numbered sentence and its relation; give it a name that ends in "
        f"{semeval.SUFFIX}",
    ),
    "squad": Reader(_json_document_rows),
    "captions": Reader(_caption_rows, _caption_objects, names_roles=True),
    "ts": Reader(
        partial(_labelled_rows, ts_records), partial(_labelled_objects, ts_records), names_roles=True
    ),
    "arff": Reader(
        partial(_labelled_rows, arff_records), partial(_labelled_objects, arff_records), names_roles=True
    ),
    "npy": Reader(_array_rows, _array_objects),
    "npz": Reader(_array_rows, _array_objects),
    "idx": Reader(_array_rows, _array_objects, names_roles=True),
    "folder": Reader(_folder_rows, _folder_objects, names_roles=True),
}
"""Readers by format (formats.py)."""


def reader(file: str) -> Reader:
    """The reader of such a file; DataError if there is none."""
    format_ = file_format(file)
    if format_ == "spreadsheet":
        raise DataError(
            f"{file}: spreadsheets are not read; save the sheet as CSV (in Excel: Save As, CSV UTF-8; in "
            "LibreOffice: Save As, Text CSV, UTF-8) and give that file"
        )
    if format_ not in READERS:
        raise DataError(f"{file}: a {format_} cannot be read as data; give files")
    return READERS[format_]
