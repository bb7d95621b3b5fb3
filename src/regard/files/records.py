"""Whole records of a table, with all of its columns, for who writes them again with more."""

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from regard.files import parquet
from regard.files.columns import Column, named_like
from regard.files.formats import file_cells, file_format
from regard.files.lines import lines


def records(
    file: str, columns: Mapping[str, Column | None], encoding: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and record of each row, as it stands in the file; nothing of a file that is no table.

    `columns` are the wanted roles, which decide whether the first line is a header.
    """
    match file_format(file):
        case "csv" | "tsv" | "dat":
            yield from _cells(file, columns, encoding)
        case "jsonl":
            for number, line in enumerate(lines(file, encoding=encoding), 1):
                if line.strip():
                    yield number, json.loads(line)
        case "parquet":
            yield from parquet.objects(file, None, lambda names: {name: name for name in names}, spelt=False)


def _cells(
    file: str, columns: Mapping[str, Column | None], encoding: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    table = file_cells(file, lines(file, encoding=encoding))
    first = next(table, (1, []))
    names = [cell.strip() for cell in first[1]]
    if not any(isinstance(column, str) or named_like(role, names) for role, column in columns.items()):
        table, names = chain([first], table), [f"column_{number}" for number in range(1, len(names) + 1)]
    for line, cells in table:
        yield line, dict(zip(names, cells, strict=False))
