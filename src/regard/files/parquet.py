"""Parquet files, read and written a few thousand rows at a time; needs pyarrow (`regard[data]`)."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from regard.errors import DataError
from regard.files.lines import resolve

ROWS = 4096
"""Read together."""


def objects(
    file: str, base: Path | None, choose: Callable[[Sequence[str]], dict[str, str]], *, spelt: bool = True
) -> Iterator[tuple[int, dict[str, object]]]:
    """Row number and record; only the columns that `choose` takes from the file's are read.

    Numbers are spelt as texts, unless they shall stay as they are.
    """
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
                    yield number, {name: _spelt(value) for name, value in record.items()} if spelt else record
    except (ArrowException, OSError) as fault:
        raise DataError(f"{file}: not a readable Parquet file after row {number} ({fault})") from fault


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Writes a table; the types are those of the first few thousand rows."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise DataError(
            f"{path}: Parquet needs pyarrow; install it with: pip install 'regard[data]'"
        ) from None
    rows, number = iter(rows), 0
    writer = None
    try:
        while batch := list(islice(rows, ROWS)):
            columns = dict(zip(header, map(list, zip(*batch, strict=True)), strict=True))
            table = pyarrow.table(columns, schema=writer and writer.schema)
            if writer is None:
                schema = pyarrow.schema([_definite(field) for field in table.schema])
                writer, table = ParquetWriter(path, schema), table.cast(schema)
            writer.write_table(table)
            number += len(batch)
    except pyarrow.ArrowException as fault:
        raise DataError(
            f"{path}: the cells of a column after row {number} are of different types ({fault}); write JSON "
            "lines instead"
        ) from None
    finally:
        if writer is not None:
            writer.close()


def _definite(field: Any) -> Any:
    """The field of a column; of one that is still empty, texts."""
    import pyarrow

    return field.with_type(pyarrow.string()) if pyarrow.types.is_null(field.type) else field


def _spelt(value: object) -> object:
    """Numbers as they are written in JSON, which has no word for those that are not finite; in lists too."""
    if isinstance(value, list):
        return [_spelt(part) for part in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return str(value) if is_number else value
