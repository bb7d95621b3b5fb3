"""Parquet files → records, a few thousand at a time; needs pyarrow, which comes with `regard[data]`."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from regard.errors import DataError
from regard.files.lines import resolve

ROWS = 4096
"""Read together."""


def objects(
    file: str, base: Path | None, choose: Callable[[Sequence[str]], dict[str, str]]
) -> Iterator[tuple[int, dict[str, object]]]:
    """Row number and record; only the columns that `choose` takes from the file's are read."""
    path = resolve(file, base)
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError(
            f"{file}: Parquet needs pyarrow; install it with: pip install 'regard[data]'"
        ) from None
    number = 0
    try:
        with ParquetFile(path) as table:
            wanted = list(dict.fromkeys(choose(table.schema_arrow.names).values()))
            for batch in table.iter_batches(ROWS, columns=wanted):
                for record in batch.to_pylist():
                    number += 1
                    yield number, {name: _spelt(value) for name, value in record.items()}
    except (ArrowException, OSError) as fault:
        raise DataError(f"{file}: not a readable Parquet file after row {number} ({fault})") from fault


def _spelt(value: object) -> object:
    """Numbers as they are written in JSON, which has no word for those that are not finite; in lists too."""
    if isinstance(value, list):
        return [_spelt(part) for part in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return str(value) if is_number else value
