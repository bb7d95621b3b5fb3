"""Sentences with a word a line and a blank line between them: CoNLL in its many widths, and CoNLL-U.

Cells stand between tabs if a line has any, else between spaces. Of CoNLL-U, comments, ranges (`3-4`, of words
that are split below) and empty nodes (`3.1`) are left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from regard.errors import DataError
from regard.files.lines import Refuse, refuse_at_once

SUFFIXES = (".conll", ".conllu", ".bio", ".iob", ".bioes", ".bmes")
UNIVERSAL = ".conllu"
MOST_WORDS = 20_000
"""Words of a sentence; a file without blank lines is not one sentence but another format."""
USUAL = {"text": 1, "tags": -1}
UNIVERSAL_COLUMNS = {"text": 2, "tags": 4}
LOOKED_AT = 2000
"""Lines at most that tell what a file is."""
SPAN_TAG = re.compile(r"O|[BIMES](-.*)?")
INSIDE_A_WORD = "\u00a0"
"""Character that a space inside a word becomes, as words are joined by spaces."""


def is_universal(file: str) -> bool:
    return file.lower().removesuffix(".gz").endswith(UNIVERSAL)


def sentences(
    file: str, text: Iterator[str], columns: Mapping[str, int | None], refuse: Refuse = refuse_at_once
) -> Iterator[tuple[int, dict[str, list[str]]]]:
    """Yields the number of a sentence's first line, and for each role the cells of its words."""
    universal = is_universal(file)
    usual = UNIVERSAL_COLUMNS if universal else USUAL
    places = {role: column or usual[role] for role, column in columns.items()}
    words: list[dict[str, str]] = []
    first = 1
    for number, line in enumerate(text, 1):
        if line.strip() and not (universal and line.startswith("#")):
            cells = _cut(line)
            if universal and not cells[0].isdecimal():
                continue
            if cells[0] == "-DOCSTART-":
                continue
            if not words:
                first = number
            if len(words) == MOST_WORDS:
                raise DataError(
                    f"{file}:{number}: more than {MOST_WORDS:,} words without a blank line; "
                    "put one after each sentence"
                )
            words.append(_cells(f"{file}:{number}", cells, places, refuse))
        elif not line.strip() and words:
            yield first, _columns(words)
            words = []
    if words:
        yield first, _columns(words)


def _cut(line: str) -> list[str]:
    """Cut at tabs or spaces; other white space, such as a no-break space in `10 000`, belongs to a word."""
    return line.split("\t") if "\t" in line else [cell for cell in line.split(" ") if cell]


def _cells(where: str, cells: Sequence[str], places: Mapping[str, int], refuse: Refuse) -> dict[str, str]:
    by_role = {}
    for role, place in places.items():
        if place > len(cells) or (place < 0 and len(cells) < len(places)):
            needed = max(place, len(places))
            refuse(
                DataError(
                    f"{where}: {len(cells)} cell{'s' * (len(cells) > 1)} found, {needed} needed; "
                    "a word and its tag stand on one line, with a tab or a space between"
                )
            )
            place = 1
        cell = cells[place if place < 0 else place - 1].strip()
        if not cell and role == "tags":
            refuse(DataError(f"{where}: the tag is empty; give the word one"))
        by_role[role] = INSIDE_A_WORD.join(cell.split()) or INSIDE_A_WORD
    return by_role


def _columns(words: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    return {role: [word[role] for word in words] for role in words[0]}


def looks_like(text: Iterator[str]) -> bool:
    """True if lines of another name are such a file: equally wide ones, in groups, of which the last cells
    mark the beginnings of spans.
    """
    rows = [_cut(line) for line in islice(text, LOOKED_AT)]
    widths = {len(row) for row in rows if any(row)}
    blank = any(not any(row) for row in rows[:-1])
    return blank and len(widths) == 1 and min(widths) > 1 and _marks_spans(rows)


def _marks_spans(rows: Sequence[Sequence[str]]) -> bool:
    last = [row[-1] for row in rows if len(row) > 1]
    return any(cell.startswith("B-") for cell in last) and all(SPAN_TAG.fullmatch(cell) for cell in last)
