"""Lines → rows, lazily: aligned text files, TSV, CSV, JSON lines, CoNLL, SQuAD, each plain or `.gz`; Parquet.

The suffix decides the format (`.tsv`, `.csv`, `.jsonl`/`.ndjson`, `.json` of SQuAD, `.parquet`, those of
conll.py and semeval.py; else it is plain text, one record per line). A path may be a pattern for many files
(`part-*.tsv.gz`), read in the order of their names. A column is a name or a number counted from 1. A TSV or
CSV file has a header if, and only if, some column is given by name, or a cell of its first line is the name
of a wanted role or one of its SYNONYMS (columns.py).
A role whose column is not given takes the column named like it; without a header, the first column that no
other role claims. Plain text files beside one another are the columns of one table. Conversations
(dialogue.py) are read from any of these but CoNLL; of their columns the reply may be missing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from regard.errors import DataError
from regard.files import conll, dialogue, parquet, semeval, squad
from regard.files.columns import Column, cell_places, column_name, named_like
from regard.files.dialogue import Turns
from regard.files.documents import By, documents
from regard.files.formats import aligned_cells, file_cells, file_format, file_objects, scalar
from regard.files.lines import UNDECODED, Refuse, expand, lines, refuse_at_once, resolve
from regard.files.lists import Lists

Asked = str | Mapping[str, str]
"""What a model is asked: a text, or where it needs several, each by its role."""
Reading = By | Turns | Lists
"""How a task reads what is not a text in each column."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record of the user's data, and where it came from."""

    fields: dict[str, str]
    file: str
    line: int
    id: str = ""
    """What the file itself calls it."""
    in_words: bool = False
    """Whether the file has cut its text into words, between which a space stands here."""

    @property
    def where(self) -> str:
        return f"{self.file}:{self.id or self.line}"


def word_where(row: Row, place: int) -> str:
    """Where a word stands: on a line of its own in CoNLL, unless there may be other lines between."""
    by_line = file_format(row.file) == "conll" and not conll.is_universal(row.file)
    return f"{row.file}:{row.line + place}" if by_line else f"{row.where}, word {place + 1}"


def several(asked: Iterable[Asked | Row]) -> Iterator[Asked | Row]:
    """What is asked, one by one; DataError if it is nothing of that kind."""
    if not isinstance(asked, Iterable):
        raise DataError(f"{asked!r}: texts must be strings")
    return iter(asked)


def rows_of(asked: Iterable[Asked | Row], *roles: str, first: int = 1) -> list[Row]:
    """For a task that needs these roles of it; what comes from no file is counted from `first`."""
    return [
        one if isinstance(one, Row) else Row(_asked(one, number, roles), "input", number)
        for number, one in enumerate(asked, first)
    ]


def _asked(one: object, number: int, roles: Sequence[str]) -> dict[str, str]:
    by_role = {roles[0]: one} if isinstance(one, str) and len(roles) == 1 else one
    if not isinstance(by_role, Mapping) or set(by_role) != set(roles):
        if len(roles) == 1:
            raise DataError(f"{one!r}: texts must be strings")
        wanted = ", ".join(f'"{role}": "…"' for role in roles)
        raise DataError(f"input {number}: {' and '.join(roles)} are needed, as in {{{wanted}}}")
    for role in roles:
        if not isinstance(by_role[role], str):
            raise DataError(f"input {number}: the {role} must be a string")
        if half := UNDECODED.search(by_role[role]):
            place = f"input {number}, character {half.start() + 1} of the {role}"
            raise DataError(f"{place}: U+{ord(half[0]):04X} is half of a surrogate pair; remove it")
    return {role: by_role[role] for role in roles}


def read_rows(
    paths: Sequence[str],
    columns: Mapping[str, Column | None],
    *,
    encoding: str = "utf-8",
    base: Path | None = None,
    by: Reading | None = None,
    refuse: Refuse = refuse_at_once,
) -> Iterator[Row]:
    """Yields the rows of aligned text files (one per role), or of files of records, one after another.

    `columns` maps each wanted role to its column, None where the file shall tell. `base` is the folder
    that relative paths start from. Fields lose surrounding white space; empty ones are for the task to judge.
    With `by` the only role is read from plain text as documents, whose white space is kept (documents.py);
    or every record is a conversation, of which several rows are made (dialogue.py); or some of its roles may
    be lists (lists.py).
    """
    for row in _records(paths, columns, encoding, base, by, refuse):
        if isinstance(by, Turns) and "reply" in columns:
            found = dialogue.exchanges(row.fields, row.where, refuse)
            yield from (replace(row, fields=fields) for fields in found)
        else:
            yield row


def first_cells(path: str, encoding: str) -> list[str]:
    """Of a table: its header, or its first row."""
    file = expand(path)[0]
    _, cells = next(file_cells(file, lines(file, encoding=encoding)), (0, []))
    return [cell.strip() for cell in cells]


def _records(
    paths: Sequence[str],
    columns: Mapping[str, Column | None],
    encoding: str,
    base: Path | None,
    by: Reading | None,
    refuse: Refuse,
) -> Iterator[Row]:
    if not paths:
        raise DataError(f"no data files are given for {', '.join(columns)}")
    plain = [path for path in paths if file_format(path) == "text"]
    if plain and len(plain) < len(paths):
        raise DataError(f"{plain[0]}: plain text cannot be mixed with files of records ({', '.join(paths)})")
    found = [expand(path, base) for path in paths]
    read = partial(lines, encoding=encoding, base=base, refuse=refuse)
    if plain and len(columns) > 1 and not (isinstance(by, Turns) and len(paths) == 1):
        if len(paths) != len(columns):
            for file in chain.from_iterable(found):
                resolve(file, base)
            raise DataError(
                f"{', '.join(paths)}: plain text needs one file for each of {', '.join(columns)}, "
                f"but the number of files is {len(paths)}"
            )
        for files in _shards(paths, found):
            cells = aligned_cells(files, [read(file) for file in files], refuse)
            yield from _table_rows(files[0], cells, columns, by, refuse)
        return
    for file in chain.from_iterable(found):
        row: Row | None = None
        rows: Iterator[Row]
        match file_format(file):
            case "text" if isinstance(by, str):
                (role,) = columns
                rows = (Row({role: part}, file, line) for line, part in documents(read(file), by))
            case "jsonl":
                rows = _object_rows(file, file_objects(file, read(file), refuse), columns, by, refuse)
            case "parquet":
                objects = parquet.objects(file, base, partial(_names, file, columns, by))
                rows = _object_rows(file, objects, columns, by, refuse)
            case "conll":
                rows = _sentence_rows(file, read(file), columns, refuse)
            case "semeval":
                told = semeval.records(file, read(file), columns, refuse)
                rows = (Row(fields, file, line) for line, fields in told)
            case "squad":
                ask = partial(squad.questions, encoding=encoding, base=base, refuse=refuse)
                rows = _question_rows(file, ask(file, answered="answer" in columns), columns)
            case _:
                rows = _table_rows(file, file_cells(file, read(file)), columns, by, refuse)
        for row in rows:
            yield row
        if row is None:
            nothing = "questions" if file_format(file) == "squad" else "records, only a header or blank lines"
            raise DataError(f"{file}: holds no {nothing}")


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


def _table_rows(
    file: str,
    table: Iterator[tuple[int, list[str]]],
    columns: Mapping[str, Column | None],
    by: Reading | None,
    refuse: Refuse,
) -> Iterator[Row]:
    first = next(table, None)
    if first is None:
        return
    names = [cell.strip() for cell in first[1]]
    has_header = file_format(file) != "text" and any(
        isinstance(column, str) or named_like(role, names) for role, column in columns.items()
    )
    if has_header or len(names) == 1:
        columns = _wanted(columns, names, by)
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
        fields = {role: cells[place].strip() for role, place in places.items()}
        if isinstance(by, Turns):
            fields = {role: _said("", role, text, by, role) for role, text in fields.items()}
        yield Row(fields, file, line)


def _wanted(
    columns: Mapping[str, Column | None], names: Sequence[str], by: Reading | None
) -> Mapping[str, Column | None]:
    """The roles to look for: where no column is the reply, the turns of a conversation hold it."""
    held = isinstance(by, Turns) and columns.get("reply", "") is None and not named_like("reply", names)
    return {role: column for role, column in columns.items() if not (held and role == "reply")}


def _object_rows(
    file: str,
    objects: Iterable[tuple[int, dict[str, object]]],
    columns: Mapping[str, Column | None],
    by: Reading | None,
    refuse: Refuse,
) -> Iterator[Row]:
    for line, record in objects:
        where = f"{file}:{line}"
        try:
            names = _names(where, columns, by, list(record))
            if "answer" in names and squad.has_lists(record[names["answer"]]):
                fields = squad.from_lists(where, *(record[names[role]] for role in squad.ROLES))
            else:
                fields = {role: _said(where, name, record[name], by, role) for role, name in names.items()}
        except DataError as fault:
            refuse(fault)
            continue
        yield Row(fields, file, line, in_words=isinstance(record.get(names.get("text", "")), list))


def _sentence_rows(
    file: str, text: Iterator[str], columns: Mapping[str, Column | None], refuse: Refuse
) -> Iterator[Row]:
    for role, column in columns.items():
        if role not in conll.USUAL:
            raise DataError(f"{file}: holds words and their tags, no {role}; is the task right?")
        if isinstance(column, str):
            raise DataError(f"{file}: its columns have no names; give the number of the {role}")
        if column is not None and column < 1:
            raise DataError(f"{file}: column {column} for {role} does not exist; columns count from 1")
    numbers = {role: column for role, column in columns.items() if not isinstance(column, str)}
    for line, fields in conll.sentences(file, text, numbers, refuse):
        yield Row(fields, file, line, in_words=True)


def _question_rows(
    file: str, found: Iterator[squad.Found], columns: Mapping[str, Column | None]
) -> Iterator[Row]:
    for role, column in columns.items():
        if role not in squad.ROLES:
            raise DataError(
                f"{file}: a .json file holds questions with contexts and answers, as SQuAD does, no {role}; "
                "JSON lines have a name that ends in .jsonl"
            )
        if column is not None:
            raise DataError(f"{file}: the {role} has its place in SQuAD's files; leave out its column")
    wanted = {*columns, squad.PLACES} if "answer" in columns else {*columns}
    for number, (name, fields) in enumerate(found, 1):
        yield Row({role: text for role, text in fields.items() if role in wanted}, file, number, name)


def _said(where: str, name: str, value: object, by: Reading | None, role: str) -> str:
    """A text, a list of words or labels, or the turns of a conversation, as one role of a row."""
    if isinstance(by, Turns):
        return dialogue.told(where, name, value, by.separator, is_reply=role == "reply")
    if isinstance(by, Lists) and role in by.separators and isinstance(value, list):
        return by.joined(where, name, value, role)
    if role == "label" and isinstance(value, list):
        raise DataError(
            f"{where}: {name} is an array; texts with several labels are for the task multilabel "
            "(regard init --task multilabel)"
        )
    return scalar(where, name, value)


def _names(
    where: str, columns: Mapping[str, Column | None], by: Reading | None, known: Sequence[str]
) -> dict[str, str]:
    wanted = _wanted(columns, known, by)
    names = {role: column_name(where, role, column, known) for role, column in wanted.items()}
    if twice := [name for name in names.values() if known.count(name) > 1]:
        raise DataError(f"{where}: several columns are named {twice[0]}; rename all but one")
    return names
