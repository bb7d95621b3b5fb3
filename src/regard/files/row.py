"""Rows: the records of somebody's data, as they are kept between a file and a task."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.errors import DataError, shown
from regard.files.lines import UNDECODED

Asked = Any
"""Question to a model: the value of its input, or where it needs several, each by its role."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record of the user's data, and where it came from.

    Cells are what JSON can hold: a text, a list of words, the path of a picture. Fields make values of them.
    """

    cells: dict[str, Any]
    file: str
    line: int
    id: str = ""
    """Name that the file itself gives it."""

    @property
    def where(self) -> str:
        """The place in its file; the file itself where all of it is one record, and it has no line."""
        place = self.id or self.line
        return f"{self.file}:{place}" if place else self.file


def several(questions: Iterable[Asked | Row]) -> Iterator[Asked | Row]:
    """Yield questions one by one; DataError if they are not a sequence of questions."""
    if not isinstance(questions, Iterable):
        raise DataError(f"{questions!r}: texts must be strings")
    return iter(questions)


def rows_of(
    questions: Iterable[Asked | Row], *roles: str, first: int = 1, fields: Mapping[str, Any] | None = None
) -> list[Row]:
    """Rows for a task that needs these roles; what comes from no file is counted from `first`.

    `fields` say what a role may be asked with; it is a text where they say nothing.
    """
    return [
        one if isinstance(one, Row) else Row(_asked(one, number, roles, fields or {}), "input", number)
        for number, one in enumerate(questions, first)
    ]


def _asked(one: Any, number: int, roles: Sequence[str], fields: Mapping[str, Any]) -> dict[str, Any]:
    by_role = one if isinstance(one, Mapping) else {roles[0]: one} if len(roles) == 1 else {}
    if set(by_role) != set(roles):
        wanted = ", ".join(f'"{role}": "…"' for role in roles)
        raise DataError(f"input {number}: give {' and '.join(roles)}, as in {{{wanted}}}")
    return {
        role: (fields[role].clean if role in fields else asked_text)(
            by_role[role], f"input {number}", f"the {role}"
        )
        for role in roles
    }


def side_by_side(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Questions of the values of each input; a single value stands beside all of the others."""
    counts = {len(values) for values in columns.values()} - {1} or {1}
    if len(counts) > 1:
        shown_counts = " and ".join(f"{len(values)} × {name}" for name, values in columns.items())
        raise DataError(f"{shown_counts}: give as many of one as of the other, or one that stands for all")
    (n,) = counts
    filled = [values if len(values) == n else [*values] * n for values in columns.values()]
    return [dict(zip(columns, values, strict=True)) for values in zip(*filled, strict=True)]


def asked_text(value: Any, where: str, name: str) -> str:
    """A text that somebody asks about, with the white space it has."""
    if not isinstance(value, str):
        raise DataError(f"{where}: {name} must be a string, not {shown(value)}")
    if half := UNDECODED.search(value):
        place = f"{where}, character {half.start() + 1} of {name}"
        raise DataError(f"{place}: U+{ord(half[0]):04X} is half of a surrogate pair; remove it")
    return value


def text_of(cell: object) -> str:
    """A cell as one text: words, or what stands for several things, with a space between."""
    if isinstance(cell, list):
        return " ".join(text_of(part.get("text", "") if isinstance(part, dict) else part) for part in cell)
    return cell if isinstance(cell, str) else str(cell)


def content_of(cell: object) -> str:
    """Content by which two cells are the same: the whole of a series, not its name."""
    return repr(dict(cell)) if isinstance(cell, Mapping) else text_of(cell)
