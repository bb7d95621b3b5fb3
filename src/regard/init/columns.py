"""What a sample of a column's values tells: labels, or text."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from regard.files.columns import Column

Columns = Mapping[Column, Sequence[str]]
"""Column → values of a sample of rows."""
Picked = tuple[Column | None, str]
"""The column of a role and why; None where no column is it."""

MAX_LABEL_CHARS = 40


def is_label(values: Sequence[str]) -> bool:
    """Few, short, recurring."""
    distinct = len(set(values))
    return 2 <= distinct <= max(2, min(50, len(values) // 10)) and max(map(len, values)) <= MAX_LABEL_CHARS


def is_text(values: Sequence[str]) -> bool:
    """Mostly words: neither labels nor the numbers of an index."""
    return not is_label(values) and fmean(any(map(str.isalpha, value)) for value in values) > 0.5


def labels(columns: Columns) -> list[Column]:
    return [column for column, values in columns.items() if is_label(values)]


def texts(columns: Columns) -> list[Column]:
    return [column for column, values in columns.items() if is_text(values)]


def longest_text(columns: Columns) -> Picked:
    found = texts(columns)
    if not found:
        return None, ""
    return max(found, key=lambda column: fmean(map(len, columns[column]))), "it holds the longest texts"
