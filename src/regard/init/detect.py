"""What are these files? The guess behind `regard init`, with its reasons in plain words.

Names come before statistics: a split is told by a word in the file name, a role by a header or JSON key.
What names leave open, a sample of rows decides: a column of few, short, recurring values is a label;
columns of words are text. What each kind of task looks like is its own to say (tasks/). The user can always
overrule: whatever is given explicitly is not guessed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, mode, quantiles
from typing import TypeVar

from regard.errors import DataError, did_you_mean
from regard.fields import FIELDS
from regard.files import conll, parquet, semeval, squad
from regard.files.columns import Column, named_like
from regard.files.formats import aligned_cells, file_cells, file_format, file_objects
from regard.files.lines import expand, lines, resolve
from regard.files.read import read_rows
from regard.files.row import Row, text_of
from regard.init.columns import MAX_LABEL_CHARS, is_label
from regard.init.guess import Guess
from regard.tasks import TASKS, Task

SPLITS = {
    "train": {"train", "trn", "training"},
    "valid": {"valid", "val", "dev", "validation"},
    "test": {"test", "tst"},
}
LANGUAGES = re.compile(
    "ar|cs|de|en|es|fa|fi|fr|he|hi|hu|id|it|ja|ko|nl|pl|pt|ro|ru|sv|th|tr|uk|vi|zh|cmn|eng|deu|fra|spa|jpn|"
    "arabic|chinese|czech|dutch|english|finnish|french|german|greek|hebrew|hindi|hungarian|italian|japanese|"
    "korean|mandarin|polish|portuguese|romanian|russian|spanish|swedish|thai|turkish|vietnamese|中文|汉语|英文|英语",
    re.IGNORECASE,
)
MAX_SAMPLE = 4000
NAME = re.compile("[a-z_][a-z0-9_]{1,29}")
ENOUGH = 20
"""Values below a header, to know that they are unlike it."""
LISTS = {"text": " ", "tags": " ", "label": "|"}
"""What stands between the parts of a list, where it is shown as one text."""
Item = TypeVar("Item")


def sniff(
    files: Sequence[str],
    *,
    task: str | None = None,
    columns: Mapping[str, Column] | None = None,
    encoding: str = "utf-8",
) -> Guess:
    """Groups `files` into splits and tells their task and columns; whatever is given is not guessed.

    Raises DataError, with the way to say it explicitly, where it cannot tell.
    """
    splits, reasons = _splits(files)
    train = splits["train"]
    given = dict(columns or {})
    if task in (None, "classify") and (other := _other_input(train, encoding)):
        return _labelled_other(splits, reasons, other, given, encoding)
    by_format = _by_format(train, task)
    known = [by_format] if by_format else _known_kinds(task, given)
    told = known[0] if known else None
    why: list[str] = []
    if told is not None and (file_format(train[0]) in told.data.formats or _is_one_text(train, told)):
        chosen = {role: given.get(role) for role in told.data.roles}
    else:
        named = any(isinstance(column, str) for column in given.values())
        table = _sample_columns(train, encoding, named)
        told = _alike(known, table) or told or _guess_kind(train, table, encoding)
        chosen, why = _fill_roles(train, told, table, given)
    for others in (splits["valid"], splits["test"]):
        if others:
            next(sample_rows(told, others, chosen, encoding))
    rows, n_rows = _thin(sample_rows(told, train, chosen, encoding))
    if not any(any(row.cells.values()) for row in rows):
        raise DataError(f"{', '.join(train)}: holds nothing but blank lines; give files with text")
    return Guess(
        task=told.kind,
        train=train,
        valid=splits["valid"] or None,
        test=splits["test"] or None,
        columns=chosen,
        n_rows=n_rows,
        sample=tuple(rows),
        lengths={
            role: _mean_and_tail([len(told.data.read(role, text_of(row.cells[role]))) for row in rows])
            for role in chosen
        },
        reasons=(*reasons, f"The task is {told.kind}.", *why),
        encoding=encoding,
    )


def _other_input(files: Sequence[str], encoding: str) -> tuple[Column, str, list[object]] | None:
    """The column of records that looks like a kind of data that is no text: its name, the kind, its cells."""
    if file_format(files[0]) != "jsonl":
        return None
    file = expand(files[0])[0]
    objects, _ = _thin(record for _, record in file_objects(file, lines(file, encoding=encoding)))
    for name in objects[0] if objects else ():
        cells = [record.get(name) for record in objects]
        scores = {kind: field.resembles(cells) for kind, field in FIELDS.items()}
        best = max(scores, key=lambda kind: scores[kind])
        if scores[best] > 0.5:
            return name, best, cells
    return None


def _labelled_other(
    splits: Mapping[str, tuple[str, ...]],
    reasons: list[str],
    other: tuple[Column, str, list[object]],
    given: Mapping[str, Column],
    encoding: str,
) -> Guess:
    """What to write for labelled data of a kind that is no text."""
    column, kind, cells = other
    table = _sample_columns(splits["train"], encoding, named=True)
    names = [name for name in table if isinstance(name, str)]
    label = given.get("label") or named_like("label", names)
    label = label or next((name for name in names if is_label(table[name])), None)
    if label is None:
        raise DataError(
            f"{splits['train'][0]}: column {column} holds data of the kind {kind}, but no column looks like "
            "labels; name one with --label"
        )
    chosen: dict[str, Column | None] = {kind: given.get(kind, column), "label": label}
    settings, size, _ = FIELDS[kind].suggest(cells)
    config = TASKS["classify"].settings(fields={kind: settings})
    read = read_rows(splits["train"], chosen, fields=config.unfitted, encoding=encoding)
    rows, n_rows = _thin(read)
    why = (
        "The task is classify.",
        f"Column {column} is the {kind}: its cells are of that kind.",
        f"Column {label} is the label.",
    )
    return Guess(
        task="classify",
        train=splits["train"],
        valid=splits["valid"] or None,
        test=splits["test"] or None,
        columns=chosen,
        n_rows=n_rows,
        sample=tuple(rows),
        lengths={},
        reasons=(*reasons, *why),
        encoding=encoding,
        fields={kind: dict(settings)},
        size=size,
    )


def sample_rows(
    kind: type[Task], files: Sequence[str], columns: Mapping[str, Column | None], encoding: str
) -> Iterator[Row]:
    """Rows as a recipe of that task would read them, but plain text line by line."""
    records = read_rows(files, columns, fields=kind.settings().unfitted, encoding=encoding)
    return (row for record in records for row in kind.rows(record))


def _is_one_text(files: Sequence[str], kind: type[Task]) -> bool:
    """Plain text of which nothing has to be told apart: files follow one another."""
    return len(kind.data.roles) == 1 and file_format(files[0]) == "text"


def _splits(files: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Files by the split word in their names; without any such word all of them are for training."""
    if not files:
        raise DataError("no files are given; try: regard init train.tsv, or regard init train.en train.de")
    for file in files:
        for one in expand(file):
            resolve(one)
    if len({file_format(file) == "text" for file in files}) > 1:
        raise DataError(f"plain text and files of records are mixed in {', '.join(files)}; give one kind")
    groups: dict[str, list[str]] = {split: [] for split in SPLITS}
    unnamed: list[str] = []
    for file in files:
        split = next((split for split, words in SPLITS.items() if words & set(_words(file))), None)
        (groups[split] if split else unnamed).append(file)
    if not groups["train"]:
        groups["train"], unnamed = unnamed, []
    if unnamed:
        raise DataError(f"{unnamed[0]}: train, valid or test? Put one of these words into the file's name")
    if not groups["train"]:
        raise DataError(f"no training file among {', '.join(files)}; name one like train.tsv")
    reasons = [f"{', '.join(group)}: for {split}, by name." for split, group in groups.items() if group]
    if not any(SPLITS["train"] & set(_words(file)) for file in files):
        reasons[0] = f"{', '.join(groups['train'])}: for training, as their names say nothing else."
    if file_format(files[0]) == "text":
        groups = {split: _like_training(groups["train"], group) for split, group in groups.items()}
    return {split: tuple(group) for split, group in groups.items()}, reasons


def _words(file: str) -> list[str]:
    return re.findall(r"[a-z]+", Path(file).name.lower())


def _like_training(train: list[str], group: list[str]) -> list[str]:
    """Parallel files in the order of the training files, told apart by the words only one of those has."""
    if group and len(group) != len(train):
        raise DataError(
            f"{', '.join(group)}: {len(group)} files, but training has {len(train)}; give one set"
        )
    words = [set(_words(file)) for file in train]
    marks = [own - set().union(*(other for other in words if other is not own)) for own in words]
    found = [[file for file in group if mark and mark <= set(_words(file))] for mark in marks]
    return [file for [file] in found] if all(len(match) == 1 for match in found) else group


def _sample_columns(files: Sequence[str], encoding: str, named: bool) -> dict[Column, list[str]]:
    """Column → values of a sample of rows: the first of several shards, all of several text files.

    Keys are names where there is a header, else numbers; those of text files number the files.
    """
    files = [expand(file)[0] for file in files]
    texts = [lines(file, encoding=encoding) for file in files]
    match file_format(files[0]):
        case "jsonl":
            objects, n_rows = _thin(record for _, record in file_objects(files[0], texts[0]))
            table = _object_columns(objects)
        case "parquet":
            found = parquet.objects(files[0], None, lambda names: {name: name for name in names})
            objects, n_rows = _thin(record for _, record in found)
            table = _object_columns(objects)
        case kind:
            plain = kind == "text"
            rows = aligned_cells(files, texts) if plain else file_cells(files[0], texts[0])
            cells, n_rows = _thin([cell.strip() for cell in row] for _, row in rows)
            table = _cell_columns(cells, header=False if plain else named or None)
    if not n_rows or (table and not any(table.values())):
        raise DataError(f"{files[0]}: holds no records, only a header or blank lines")
    return table


def _object_columns(objects: Sequence[Mapping[str, object]]) -> dict[Column, list[str]]:
    """Only the keys that hold text, numbers (read as text) or truth values in every object; or lists."""
    held = [{key: value for key, value in row.items() if _is_held(key, value, row)} for row in objects]
    first = next(iter(held), {})
    shared = [key for key in first if key.isprintable() and all(key in row for row in held)]
    return {key: [_shown(key, row[key]) for row in held] for key in shared}


def _is_held(key: str, value: object, row: Mapping[str, object]) -> bool:
    """Of lists only those whose name says what they are: labels, turns, words and as many tags; or answers of
    SQuAD.
    """
    if isinstance(value, list):
        if any(named_like(role, [key]) for role in ("label", "context", "reply")):
            return True
        pair = [row.get(named_like(role, row) or "") for role in ("text", "tags")]
        return value in pair and len({len(part) if isinstance(part, list) else None for part in pair}) == 1
    return isinstance(value, str | bool) or squad.has_lists(value)


def _shown(key: str, value: object) -> str:
    """Of answers the first; words and labels as they would stand in a text."""
    if isinstance(value, dict):
        texts = value["text"]
        return str(texts[0]) if isinstance(texts, list) and texts else ""
    between = next((LISTS[role] for role in LISTS if named_like(role, [key])), None)
    if isinstance(value, list) and between is not None:
        return between.join(map(str, value))
    return str(value)


def _cell_columns(cells: Sequence[Sequence[str]], header: bool | None) -> dict[Column, list[str]]:
    """Of the rows of the usual width; others are for `read_rows` to refuse, if what they lack is wanted."""
    width = mode(map(len, cells)) if cells else 0
    columns = list(zip(*(row for row in cells if len(row) == width), strict=True))
    if header or (header is None and columns and _is_header(columns)):
        names = [name for name, *_ in columns]
        keys = [name if names.count(name) == 1 else number for number, name in enumerate(names, 1)]
        return {key: values for key, (_, *values) in zip(keys, columns, strict=True)}
    return {number: list(values) for number, values in enumerate(columns, 1)}


def _thin(items: Iterable[Item]) -> tuple[list[Item], int]:
    """At most MAX_SAMPLE items, evenly spaced over all of them (files are often sorted), and their number."""
    kept: list[Item] = []
    stride, number = 1, 0
    for number, item in enumerate(items, 1):
        if (number - 1) % stride == 0:
            kept.append(item)
        if len(kept) > MAX_SAMPLE:
            kept, stride = kept[::2], stride * 2
    return kept, number


def _is_header(columns: Sequence[Sequence[str]]) -> bool:
    """Known names, names of languages, short cells of which one never recurs among the labels below it; or
    what could be variables in a program, above texts that could not."""
    first = [values[0] for values in columns]
    if any(named_like(role, first) for kind in TASKS.values() for role in kind.data.roles):
        return True
    if sum(LANGUAGES.fullmatch(name) is not None for name in first) >= 2:
        return True
    if all(map(NAME.fullmatch, first)) and any(_are_texts(below) for _, *below in columns):
        return len(set(first)) == len(first)
    alone = (is_label(below) and name not in below and not name.isdigit() for name, *below in columns)
    return max(map(len, first)) <= MAX_LABEL_CHARS and any(alone)


def _are_texts(values: Sequence[str]) -> bool:
    named = sum(NAME.fullmatch(value) is not None for value in values)
    return len(values) >= ENOUGH and named <= len(values) / 100


def _known_kinds(task: str | None, given: Mapping[str, Column]) -> list[type[Task]]:
    """The task that was named, or those of one set of roles that were."""
    if task is not None and task not in TASKS:
        raise DataError(f"unknown task {task}{did_you_mean(task, TASKS)}")
    kinds = [
        kind for kind in TASKS.values() if task in (None, kind.kind) and set(given) <= set(kind.data.roles)
    ]
    if not kinds:
        roles = "; ".join(f"{kind.kind} has {' and '.join(kind.data.roles)}" for kind in TASKS.values())
        raise DataError(f"no task has columns for {' and '.join(given)}: {roles}")
    return [kind for kind in kinds if kind.data.roles == kinds[0].data.roles] if task or given else []


def _by_format(files: Sequence[str], task: str | None) -> type[Task] | None:
    """The kind of task that alone has such files."""
    found = next((kind for kind in TASKS.values() if file_format(files[0]) in kind.data.formats), None)
    if found is not None and task not in (None, found.kind):
        raise DataError(f"{files[0]}: this format is for the task {found.kind!r}, not {task!r}; drop --task")
    return found


def _guess_kind(files: Sequence[str], table: Mapping[Column, list[str]], encoding: str) -> type[Task]:
    """By the names of columns; where these speak for several kinds or none, by their values."""
    file = expand(files[0])[0]
    if file_format(file) in ("text", "tsv") and conll.looks_like(lines(file, encoding=encoding)):
        raise DataError(
            f"{file}: looks like CoNLL, a word and its tag a line; give it a name that ends in .conll"
        )
    if file_format(file) == "text" and semeval.looks_like(lines(file, encoding=encoding)):
        raise DataError(
            f"{file}: looks like SemEval-2010 task 8, a numbered sentence and its relation; give it a name "
            f"that ends in {semeval.SUFFIX}"
        )
    names = [column for column in table if isinstance(column, str)]
    possible = [kind for kind in TASKS.values() if _has_texts(kind, table)] or list(TASKS.values())
    hits = {kind.kind: {role for role in kind.data.roles if named_like(role, names)} for kind in possible}
    most = max(map(len, hits.values()))
    tied = [kind for kind in possible if len(hits[kind.kind]) == most]
    if len(tied) > 1 and (alike := _alike(tied, table)):
        return alike
    if most and all(hits[kind.kind] == hits[tied[0].kind] for kind in tied):
        return tied[0]
    raise _cannot_tell(files, table)


def _has_texts(kind: type[Task], table: Mapping[Column, list[str]]) -> bool:
    """Whether texts that no name tells have columns left that no label stands in."""
    named = {
        role: named_like(role, [key for key in table if isinstance(key, str)]) for role in kind.data.roles
    }
    wanted = [role for role in kind.data.texts if named[role] is None and role not in kind.data.may_lack]
    free = [key for key in table if key not in named.values() and not is_label(table[key])]
    return len(wanted) <= len(free)


def _alike(kinds: Sequence[type[Task]], table: Mapping[Column, list[str]]) -> type[Task] | None:
    """Of several, the one whose values these could be: the last, as it asks for most."""
    return next((kind for kind in reversed(kinds) if kind.data.looks_like(table)), None)


def _fill_roles(
    files: Sequence[str], kind: type[Task], table: Mapping[Column, list[str]], given: Mapping[str, Column]
) -> tuple[dict[str, Column | None], list[str]]:
    """Each role's column, as given, by its name, or by statistics; with the reason for each."""
    plain = file_format(files[0]) == "text"
    keys = list(table)
    chosen: dict[str, Column | None] = dict.fromkeys(kind.data.roles)
    reasons = []
    for role in chosen:
        column = given.get(role)
        if isinstance(column, int):
            if not 1 <= column <= len(keys):
                raise DataError(
                    f"{files[0]}: no column {column} for {role}; its columns are 1 to {len(keys)}"
                )
            column = keys[column - 1]
        chosen[role] = column or named_like(role, [key for key in keys if isinstance(key, str)])
        if chosen[role] is not None:
            reasons.append(f"Column {chosen[role]} is the {role}, {'as given' if column else 'by its name'}.")
    for role in sorted(chosen):  # label before text, source before target
        if chosen[role] is None:
            if role in kind.data.may_lack:
                reasons.append(f"No column is named like {role}: every turn but the first is one.")
                continue
            rest = {key: values for key, values in table.items() if key not in chosen.values()}
            picked, why = kind.data.pick(role, rest)
            if picked is None and len(rest) == 1:
                picked, why = next(iter(rest)), "it is the only one left"
            if picked is None:
                raise _cannot_tell(files, table)
            chosen[role] = picked
            shown = files[int(picked) - 1] if plain else f"Column {picked}"
            reasons.append(f"{shown} is the {role}: {why}.")
    in_order = plain and list(chosen.values()) == list(range(1, len(chosen) + 1))
    return dict.fromkeys(chosen) if in_order else chosen, reasons


def _cannot_tell(files: Sequence[str], table: Mapping[Column, list[str]]) -> DataError:
    seen = [
        f"column {column} ({len(set(values))} different values, mean length {fmean(map(len, values)):.0f})"
        for column, values in list(table.items())[:8]
    ]
    return DataError(
        f"{', '.join(files)}: cannot tell the task or its columns from {', '.join(seen) or 'these fields'}; "
        f"say them, as in: regard init {' '.join(files)} "
        f"{', or '.join(TASKS[name].data.example for name in sorted(TASKS))}"
    )


def _mean_and_tail(lengths: Sequence[int]) -> tuple[int, int]:
    twentieths = quantiles(lengths, n=20, method="inclusive") if len(lengths) > 1 else [lengths[0]] * 19
    return round(fmean(lengths)), round(twentieths[18])
