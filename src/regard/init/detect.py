"""Detection of what files are for, with the reasons in plain words.

Names come before statistics: a split is known by a word in a file's name, a role by a header or a key. What
names leave open, a sample of rows decides: every task says how special it would be that the columns are as
they are (`Task.recognise`), and the best one is taken. Where two are as good, both are named and nothing is
written. Whatever the user says is not guessed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from statistics import fmean, mode, quantiles
from typing import Any, TypeVar

from regard.errors import DataError, did_you_mean
from regard.fields.label import USUAL_LENGTH, Label
from regard.files.captions import gathered
from regard.files.columns import Column, named_like
from regard.files.formats import aligned_cells, file_format
from regard.files.lines import expand
from regard.files.measurements import is_word
from regard.files.read import READERS, Reading, Record, read_rows, reader
from regard.files.row import Row, text_of
from regard.init.columns import Table
from regard.init.files import splits
from regard.init.guess import Guess, Titles
from regard.init.match import Given, Match, Missing
from regard.init.titles import titles_among
from regard.tasks import TASKS, Task
from regard.tasks.task import TaskSettings

LANGUAGES = re.compile(
    "ar|cs|de|en|es|fa|fi|fr|he|hi|hu|id|it|ja|ko|nl|pl|pt|ro|ru|sv|th|tr|uk|vi|zh|cmn|eng|deu|fra|spa|jpn|"
    "arabic|chinese|czech|dutch|english|finnish|french|german|greek|hebrew|hindi|hungarian|italian|japanese|"
    "korean|mandarin|polish|portuguese|romanian|russian|spanish|swedish|thai|turkish|vietnamese|中文|汉语|英文|英语",
    re.IGNORECASE,
)
CLOSE = 0.05
"""Scores that differ by less are as good."""
MAX_SAMPLE = 4000
TABLES = {"csv", "tsv", "dat", "jsonl", "parquet"}
MOST_TITLED = 1_000_000
MOST_BESIDE = 10
"""Files among which one of titles is looked for."""
MOST_COLUMNS = 100
"""Looked at, beside those with names that are known: no two columns of thousands are compared."""
NAME = re.compile("[a-z_][a-z0-9_]{1,29}")
MOST_SIDES = 3
"""Plain text files that belong together line by line at most: two texts and a label."""
UNLIKE = 0.8
"""Share of the lines of the longest below which a file is not beside it; a little less is a fault in it."""
ENOUGH = 20
"""Values below a header, to know that they are unlike it."""
Item = TypeVar("Item")


def detect(
    files: Sequence[str],
    *,
    task: str | None = None,
    columns: Mapping[str, Column] | None = None,
    encoding: str = "utf-8",
    by_split: Mapping[str, Sequence[str]] | None = None,
) -> Guess:
    """Groups `files` into splits and finds their task and columns; whatever is given is not guessed.

    `by_split` are files of which the split is given.

    Raises DataError, with the way to say it explicitly, where it cannot be known.
    """
    titles = _titles(files, task, encoding)
    kept = [file for file in files if titles is None or file != titles.file]
    grouped, reasons = splits(kept, by_split)
    if titles is not None:
        reasons.append(titles.reason)
    train, given = grouped["train"], dict(columns or {})
    kind, match = _recognised(train, task, given, encoding)
    settings = kind.settings.model_validate(
        {
            "fields": {
                role: {"kind": one, **match.settings.get(role, {})} for role, one in match.fields.items()
            }
        }
        if match.fields
        else {}
    )

    def rows_in(files: tuple[str, ...]) -> Iterator[Row]:
        return sample_rows(kind, settings, files, match.roles, encoding)

    for others in (grouped["valid"], grouped["test"]):
        if others:
            next(rows_in(others))
    rows, n_rows = thinned(rows_in(train))
    if not any(any(row.cells.values()) for row in rows):
        raise DataError(f"{', '.join(train)}: holds nothing but blank lines; give files with text")
    n_held, unit = (n_rows, "") if kind.data.amount is None else kind.data.amount(rows)
    why = f": {match.reason}" if match.reason else ""
    guess = Guess(
        task=kind.kind,
        train=train,
        valid=grouped["valid"] or None,
        test=grouped["test"] or None,
        columns=dict(match.roles),
        n_rows=n_held,
        sample=tuple(rows),
        lengths={
            role: _mean_and_tail([len(kind.data.read(role, text_of(row.cells[role]))) for row in rows])
            for role in kind.data.texts
            if role not in match.fields and role in match.roles
        },
        reasons=(
            *reasons,
            f"The task is {kind.kind}{why}.",
            *match.reasons,
        ),
        reason=match.reason,
        encoding=encoding,
        kinds=dict(match.fields),
        unit=unit,
        titles=titles,
    )
    return replace(guess, suggestions=kind.data.suggestions(guess, match.settings))


def _titles(files: Sequence[str], task: str | None, encoding: str) -> Titles | None:
    """The file that says what items are called, if the others are of interactions with them."""
    if task not in (None, "recommend") or not 1 < len(files) <= MOST_BESIDE:
        return None
    if any(Path(file).is_dir() or file_format(file) not in TABLES for file in files):
        return None

    def cells_of(file: str) -> set[str]:
        records = (record for path in expand(file) for record in _read(path, Reading({}, encoding=encoding)))
        return {str(cell) for record in islice(records, MOST_TITLED) for cell in record.values()}

    with suppress(DataError):  # what is wrong with files is told when they are read for what they are
        return titles_among({file: _table((file,), encoding, named=False) for file in files}, cells_of)
    return None


def sample_rows(
    kind: type[Task],
    settings: TaskSettings,
    files: Sequence[str],
    columns: Mapping[str, Column | None],
    encoding: str,
) -> Iterator[Row]:
    """Rows as a recipe of that task would read them, but plain text line by line."""
    records = read_rows(
        files, columns, fields=settings.unfitted, encoding=encoding, measured=settings.measured
    )
    if settings.gathered is not None:
        records = gathered(records, *settings.gathered)
    return (row for record in records for row in kind.rows(record))


def thinned(items: Iterable[Item], most: int = MAX_SAMPLE) -> tuple[list[Item], int]:
    """Sample at most so many items, evenly spaced (files are often sorted), and count all."""
    kept: list[Item] = []
    stride, number = 1, 0
    for number, item in enumerate(items, 1):
        if (number - 1) % stride == 0:
            kept.append(item)
        if len(kept) > most:
            kept, stride = kept[::2], stride * 2
    return kept, number


def _recognised(
    files: tuple[str, ...], asked: str | None, given: dict[str, Column], encoding: str
) -> tuple[type[Task], Match]:
    """The task that the files are for, and the roles of their columns."""
    tasks = _possible(files[0], asked, given)
    if asked is None and not given and _are_unlike(files, encoding):
        tasks = [kind for kind in tasks if kind.data.is_one_text][:1]
    if reader(files[0]).records is None:
        kind = next((one for one in tasks if one.data.holds(files[0])), tasks[0])
        return kind, Match({role: given.get(role) for role in kind.data.roles}, 1.0, fields=kind.data.kinds)
    if len(tasks) == 1 and tasks[0].data.is_one_text and file_format(files[0]) == "text":
        return tasks[0], Match(dict.fromkeys(tasks[0].data.roles), 1.0)
    table = _table(files, encoding, any(isinstance(column, str) for column in given.values()))
    given = {role: _named(table, role, column) for role, column in given.items()}
    found = {kind: kind.recognise(table, given) for kind in tasks}
    matches = {kind: match for kind, match in found.items() if isinstance(match, Match)}
    if len(tasks) > 1:
        matches = {kind: match for kind, match in matches.items() if match.score > 0}
    if not matches:
        raise _cannot_tell(table, found)
    best, *others = sorted(matches, key=lambda kind: -matches[kind].score)
    if others and matches[best].score - matches[others[0]].score < CLOSE:
        raise _two_are_close(table, best, others[0], matches)
    match = matches[best]
    if reader(files[0]).names_roles:
        match = replace(match, roles=dict.fromkeys(match.roles))
    if file_format(files[0]) == "text" and [*match.roles.values()] == [*range(1, len(match.roles) + 1)]:
        match = replace(match, roles=dict.fromkeys(match.roles))  # as they are read anyway
    return best, match


def _are_unlike(files: tuple[str, ...], encoding: str) -> bool:
    """True if these are plain text files that cannot belong together line by line: their lengths differ."""
    if len(files) < 2 or any(file_format(file) != "text" for file in files):
        return False
    reading = Reading({}, encoding=encoding)
    counts = [sum(1 for path in expand(file) for _ in reading.lines(path)) for file in files]
    return len(files) > MOST_SIDES or min(counts) < UNLIKE * max(counts)


def _possible(file: str, asked: str | None, given: Given) -> list[type[Task]]:
    """The tasks that the user or the format leaves."""
    if asked is not None and asked not in TASKS:
        raise DataError(f"unknown task {asked}{did_you_mean(asked, TASKS)}")
    by_format = [kind for kind in TASKS.values() if file_format(file) in kind.data.formats]
    if by_format and asked not in (None, *(kind.kind for kind in by_format)):
        names = " or ".join(repr(kind.kind) for kind in by_format)
        raise DataError(f"{file}: this format is for the task {names}, not {asked!r}; drop --task")
    tasks = [kind for kind in by_format or TASKS.values() if asked in (None, kind.kind)]
    fitting = [kind for kind in tasks if set(given) <= kind.data.possible_roles]
    if not fitting:
        roles = "; ".join(f"{kind.kind} has {' and '.join(kind.data.roles)}" for kind in tasks)
        raise DataError(f"no task has columns for {' and '.join(given)}: {roles}")
    return fitting


def _named(table: Table, role: str, column: Column) -> Column:
    """A number as a name, where there is a header."""
    keys = list(table.cells)
    if not isinstance(column, int) or column > MOST_COLUMNS:
        return column
    if not 1 <= column <= len(keys):
        raise DataError(f"{table.files[0]}: no column {column} for {role}; its columns are 1 to {len(keys)}")
    return keys[column - 1]


def _table(files: tuple[str, ...], encoding: str, named: bool) -> Table:
    """A sample of the rows: of the first of several shards, of all of several text files.

    Columns have names where there is a header, else numbers; those of text files number the files.
    """
    first = [expand(file)[0] for file in files]
    reading = Reading({}, encoding=encoding)
    plain = file_format(first[0]) == "text"
    records: Iterator[Record]
    if plain and len(first) > 1:
        aligned = aligned_cells(first, [reading.lines(file) for file in first])
        records = (dict(enumerate((cell.strip() for cell in cells), 1)) for _, cells in aligned)
    else:
        records = _read(first[0], reading)
    ahead = list(islice(records, 1))
    width = max(map(len, ahead), default=1)
    sample, n_rows = thinned(chain(ahead, records), max(ENOUGH, min(MAX_SAMPLE, 2_000_000 // width)))
    cells = _looked_at(_columns(sample, header=False if plain else named or None))
    if not n_rows or (cells and not any(cells.values())):
        raise DataError(f"{first[0]}: holds no records, only a header or blank lines")
    return Table(files, cells)


def _read(file: str, reading: Reading) -> Iterator[Record]:
    if file_format(file) in ("text", "tsv"):
        for other in READERS.values():
            if other.looks_like is not None and other.looks_like(reading.lines(file)):
                raise DataError(f"{file}: looks like {other.like}")
    read = reader(file).records
    assert read is not None
    return read(file, reading)


def _columns(sample: Sequence[Record], header: bool | None) -> dict[Column, list[Any]]:
    """Cells by column, of the records of the usual form; `read_rows` refuses others if they lack what is
    wanted.
    """
    if any(isinstance(key, str) for record in sample[:1] for key in record):
        shared = [key for key in sample[0] if all(key in record for record in sample)]
        return {key: [record[key] for record in sample] for key in shared if str(key).isprintable()}
    width = mode(map(len, sample)) if sample else 0
    rows = [list(record.values()) for record in sample if len(record) == width]
    columns = [list[Any](column) for column in zip(*rows, strict=True)]
    if header or (header is None and columns and _is_header(columns)):
        names = [name for name, *_ in columns]
        keys = [name if names.count(name) == 1 else number for number, name in enumerate(names, 1)]
        return {key: values for key, (_, *values) in zip(keys, columns, strict=True)}
    return dict(enumerate(columns, 1))


def _looked_at(columns: dict[Column, list[Any]]) -> dict[Column, list[Any]]:
    names = [column for column in columns if isinstance(column, str)]
    known = {named_like(role, names) for kind in TASKS.values() for role in kind.data.roles}
    kept = [*islice(columns, MOST_COLUMNS), *(name for name in names if name in known)]
    return {column: columns[column] for column in dict.fromkeys(kept)}


def _is_header(columns: Sequence[Sequence[str]]) -> bool:
    """Known names, names of languages, short cells of which one never recurs among the labels below it; what
    could be variables in a program, above texts that could not; or a word above nothing but numbers.
    """
    first = [values[0] for values in columns]
    if any(named_like(role, first) for kind in TASKS.values() for role in kind.data.roles):
        return True
    if sum(LANGUAGES.fullmatch(name) is not None for name in first) >= 2:
        return True
    if any(is_word(name) and below and not any(map(is_word, below)) for name, *below in columns):
        return True
    if all(map(NAME.fullmatch, first)) and any(_are_texts(below) for _, *below in columns):
        return len(set(first)) == len(first)
    alone = (Label.resembles(below) and name not in below and not name.isdigit() for name, *below in columns)
    return max(map(len, first)) <= USUAL_LENGTH and any(alone)


def _are_texts(values: Sequence[str]) -> bool:
    named = sum(NAME.fullmatch(value) is not None for value in values)
    return len(values) >= ENOUGH and named <= len(values) / 100


def _cannot_tell(table: Table, found: Mapping[type[Task], Match | Missing]) -> DataError:
    """Names the two columns that could both have a role; or else what was seen, and how to say what it is."""
    files = " ".join(table.files)
    for kind, missing in found.items():
        if isinstance(missing, Missing) and missing.why:
            say = f"regard init {files} --task {kind.kind} --column {missing.role}=COLUMN"
            return DataError(f"{files}: which is the {missing.role}? {missing.why}; say it, as in: {say}")
    seen = [
        f"{table.called(name)} ({len(set(cells))} different values, mean length {fmean(map(len, cells)):.0f})"
        for name, cells in list(table.texts.items())[:8]
    ]
    (kind, *others), what = list(found), ", ".join(seen) or "these columns"
    if not others:
        return DataError(
            f"{files}: cannot tell the columns of the task {kind.kind} from {what}; say them, as in: "
            f"regard init {files} {_example(kind)}"
        )
    return DataError(
        f"{files}: cannot tell the task or its columns from {what}; say them, as in: regard init {files} "
        f"{_example(TASKS['classify'])} (tasks: {', '.join(TASKS)})"
    )


def _two_are_close(
    table: Table, one: type[Task], other: type[Task], matches: Mapping[type[Task], Match]
) -> DataError:
    files = " ".join(table.files)
    why = "; ".join(f"{kind.kind}, as there are {matches[kind].reason}" for kind in (one, other))
    return DataError(
        f"{files}: could be for two tasks: {why}. Say which, as in: regard init {files} --task {one.kind}"
    )


def _example(kind: type[Task]) -> str:
    return " ".join([f"--task {kind.kind}", *(f"--column {role}=COLUMN" for role in kind.data.roles)])


def _mean_and_tail(lengths: Sequence[int]) -> tuple[int, int]:
    twentieths = quantiles(lengths, n=20, method="inclusive") if len(lengths) > 1 else [lengths[0]] * 19
    return round(fmean(lengths)), round(twentieths[18])
