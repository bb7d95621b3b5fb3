"""Relations as SemEval-2010 task 8 has them: a numbered sentence in quotes, its relation, a comment.

    1	"The <e1>author</e1> of a keygen uses a <e2>disassembler</e2>."
    Instrument-Agency(e2,e1)
    Comment:

Sentences without relations, as in test files, can be read where only the text is wanted.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from regard.errors import DataError
from regard.files.lines import Refuse, refuse_at_once

SUFFIX = ".semeval"
LOOKED_AT = 50
"""Lines at most that tell what a file is."""
_NUMBER = re.compile(r"\d+\t")


def records(
    file: str, text: Iterator[str], columns: Mapping[str, object], refuse: Refuse = refuse_at_once
) -> Iterator[tuple[int, dict[str, str]]]:
    """The number of a sentence's line, and its fields."""
    for role, column in columns.items():
        if role not in ("text", "label"):
            raise DataError(f"{file}: holds sentences and their relations, no {role}; is the task right?")
        if column is not None:
            raise DataError(f"{file}: has no columns; leave out the column of {role}")
    parts: list[str] = []
    first, ended = 1, True
    for number, line in enumerate(text, 1):
        if _NUMBER.match(line):
            yield from _record(f"{file}:{first}", first, parts, columns, refuse)
            parts, first, ended = [_unquoted(line.partition("\t")[2].strip())], number, False
        elif not line.strip():
            ended = True
        elif ended or not parts:
            yield from _record(f"{file}:{first}", first, parts, columns, refuse)
            parts, ended = [], False
            refuse(DataError(f'{file}:{number}: not a sentence; one looks like: 1, a tab, "The <e1>…"'))
        else:
            parts.append(line.strip())
    yield from _record(f"{file}:{first}", first, parts, columns, refuse)


def _record(
    where: str, first: int, parts: list[str], columns: Mapping[str, object], refuse: Refuse
) -> Iterator[tuple[int, dict[str, str]]]:
    """The record of a sentence, its relation and its comment; nothing before the first."""
    fields = dict(zip(("text", "label"), parts, strict=False))
    if parts and columns.keys() <= fields.keys():
        yield first, {role: fields[role] for role in columns}
    elif parts:
        refuse(DataError(f"{where}: the sentence has no relation; it stands on the line after it"))


def _unquoted(text: str) -> str:
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


def looks_like(text: Iterator[str]) -> bool:
    """True if lines of another name are such a file."""
    filled = [line for line in islice(text, LOOKED_AT) if line.strip()]
    if len(filled) < 2 or "<e1>" not in filled[0]:
        return False
    return _NUMBER.match(filled[0]) is not None and _NUMBER.match(filled[1]) is None
