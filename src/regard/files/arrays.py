"""Arrays: `.npy` and IDX hold one, `.npz` several by name. Nothing in them is ever unpickled.

An `.npy` file is mapped. The members of an `.npz` file are read only after their heads have said how large
they are, and that is what the archive says too.
"""

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from regard.errors import DataError
from regard.files.columns import Column, column_name
from regard.files.idx import is_idx, read_idx
from regard.files.lines import resolve

Array = NDArray[Any]

MOST_BYTES = 4_000_000_000
"""Bytes of all arrays of an archive."""
MOST_ARRAYS = 100
KINDS = "biufUS"
"""Truth values, integers, numbers, texts."""


def arrays(file: str, base: Path | None = None) -> dict[str, Array]:
    """The arrays of a file by their names; the only one of a file is called `values`."""
    path = resolve(file, base)
    try:
        if path.suffix.lower() == ".npz":
            by_name = _members(file, path)
        else:
            by_name = {"values": read_idx(path) if is_idx(path.name) else _mapped(path)}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as fault:
        raise DataError(f"{file}: not a readable file of numpy arrays ({fault}); save it again") from None
    for name, array in by_name.items():
        if array.dtype.kind not in KINDS:
            raise DataError(f"{file}: array {name} holds {array.dtype}, which are neither numbers nor texts")
        if not array.ndim or not len(array):
            raise DataError(f"{file}: array {name} is empty")
    return by_name


def record(cell: Mapping[str, Any]) -> Array:
    """The record of an array that a cell stands for: {"array": path, "name": …, "index": …}."""
    path = Path(cell["array"])
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    by_name: Array = _opened(str(path), changed)[cell["name"]][cell["index"]]
    return by_name


@lru_cache(4)
def _opened(file: str, changed: int) -> dict[str, Array]:
    return arrays(file)


def names_of(file: str, by_name: Mapping[str, Array], columns: Mapping[str, Column | None]) -> dict[str, str]:
    """The name of each role's array; the only array is that of the only role."""
    if len(by_name) == len(columns) == 1:
        return dict(zip(columns, by_name, strict=True))
    return {role: column_name(file, role, column, list(by_name)) for role, column in columns.items()}


def refuse_unequal(where: str, by_name: Mapping[str, Array]) -> None:
    """DataError unless all arrays have as many records; they are called as the keys say."""
    if len({*map(len, by_name.values())}) > 1:
        sizes = ", ".join(f"{name} has {len(array):,}" for name, array in by_name.items())
        raise DataError(
            f"{where}: arrays of different length ({sizes}); they must belong together row by row"
        )


def cell_of(record: Any) -> object:
    """A record as a cell: a number as text, several as a list, but one of a single number as that."""
    values = record.tolist()
    if isinstance(values, list) and len(values) == 1:
        (values,) = values
    return str(values) if isinstance(values, int) else values


def moments(file: str, by_name: Mapping[str, Array]) -> Iterator[tuple[int, Sequence[object]]]:
    """The rows of an array of steps × channels, numbered from 1."""
    if len(by_name) > 1:
        raise DataError(
            f"{file}: holds {len(by_name)} arrays ({', '.join(by_name)}); save the measurements alone"
        )
    ((name, array),) = by_name.items()
    if array.ndim > 2 or array.dtype.kind not in "biuf":
        raise DataError(f"{file}: array {name} is no table of numbers (steps × channels), but {array.shape}")
    table = array.reshape(len(array), -1)
    return ((number, row.tolist()) for number, row in enumerate(table, 1))


def _mapped(path: Path) -> Array:
    by_name: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    return by_name


def _members(file: str, path: Path) -> dict[str, Array]:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if total > MOST_BYTES or len(members) > MOST_ARRAYS:
            raise DataError(
                f"{file}: {len(members)} arrays of {total:,} bytes; the limits are {MOST_ARRAYS} arrays and "
                f"{MOST_BYTES:,} bytes"
            )
        by_name = {}
        for member in members:
            with archive.open(member) as stream:
                by_name[member.filename.removesuffix(".npy")] = _array(stream, member.file_size)
    return by_name


def _array(stream: IO[bytes], size: int) -> Array:
    """An array of a stream of so many bytes, whose head is judged before anything is allocated."""
    version = npy.read_magic(stream)
    head = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = head(stream)
    n_bytes = prod(shape) * dtype.itemsize
    if dtype.hasobject or n_bytes > size:
        raise ValueError("an array that is not what it says")
    array = np.frombuffer(stream.read(n_bytes), dtype)
    return array.reshape(shape, order="F" if fortran else "C")
