"""A finding: how bad it is, a sentence about it, and the first places to look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Literal

from regard.files.row import Row, text_of

SHOWN = 3
"""Places named per finding."""
MAX_EXCERPT = 80

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Place:
    where: str
    """file:line"""
    excerpt: str = ""


@dataclass(frozen=True)
class Finding:
    """An error would stop training or spoil it; a warning costs quality; a note is worth knowing."""

    severity: Severity
    kind: str
    """A word that stays the same from version to version, for scripts."""
    message: str
    count: int = 1
    places: tuple[Place, ...] = ()


def about(severity: Severity, kind: str, split: str, rows: Sequence[Row], remark: str) -> list[Finding]:
    """A finding about these rows of a split, if there are any: `valid: 3 rows` and the remark."""
    if not rows:
        return []
    firsts = (
        next(in_row) for _, in_row in groupby(rows, lambda row: row.where)
    )  # of several from one record
    places = tuple(Place(row.where, _excerpt(row)) for row in islice(firsts, SHOWN))
    n = f"{len(rows):,} row{'s' * (len(rows) > 1)}"
    return [Finding(severity, kind, f"{split}: {n} {remark}", len(rows), places)]


def _excerpt(row: Row) -> str:
    text = " | ".join(map(text_of, row.cells.values())).replace("\n", " / ")
    return text if len(text) <= MAX_EXCERPT else text[: MAX_EXCERPT - 1] + "…"
