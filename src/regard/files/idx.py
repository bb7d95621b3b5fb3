"""IDX files (`…-ubyte`, `…-ubyte.gz`), as MNIST comes in: an array whose first axis counts records.

What the header promises is compared with what the file holds before anything is allocated.
"""

import gzip
import math
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from regard.errors import DataError

Array = NDArray[Any]
MOST_BYTES = 4_000_000_000
"""Bytes of one array, unpacked."""
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def is_idx(name: str) -> bool:
    """True if a file is called as IDX files are: `train-images-idx3-ubyte`, `t10k-labels.idx1-ubyte.gz`."""
    return name.lower().removesuffix(".gz").endswith("ubyte")


def read_idx(path: Path) -> Array:
    """The array of a file: mapped, unless it is packed."""
    try:
        return _read(path)
    except (OSError, EOFError, zlib.error) as fault:
        raise DataError(f"{path}: cannot be read as IDX ({fault}); get the file again") from None


def _read(path: Path) -> Array:
    if path.suffix.lower() != ".gz":
        with path.open("rb") as file:
            dtype, shape = _header(file, path)
            begin = file.tell()
        _compare(dtype, shape, path.stat().st_size - begin, path)
        return np.memmap(path, dtype, "r", begin, shape)
    with gzip.open(path) as packed:
        dtype, shape = _header(packed, path)
        content = packed.read(math.prod(shape) * dtype.itemsize + 1)
    _compare(dtype, shape, len(content), path)
    return np.frombuffer(content, dtype).reshape(shape)


def _header(file: BinaryIO | gzip.GzipFile, path: Path) -> tuple[np.dtype[Any], tuple[int, ...]]:
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in TYPES or not magic[3]:
        raise DataError(f"{path}: no IDX file: its first bytes name no type and number of axes")
    shape = tuple(np.frombuffer(file.read(4 * magic[3]), ">u4").tolist())
    if len(shape) < magic[3]:
        raise DataError(f"{path}: ends within its header; get the file again")
    dtype = np.dtype(TYPES[magic[2]])
    if math.prod(shape) * dtype.itemsize > MOST_BYTES:
        raise DataError(f"{path}: an array of more than {MOST_BYTES:,} bytes; split it")
    return dtype, shape


def _compare(dtype: np.dtype[Any], shape: tuple[int, ...], n_bytes: int, path: Path) -> None:
    expected = math.prod(shape) * dtype.itemsize
    if n_bytes != expected:
        held = f"only {n_bytes:,}" if n_bytes < expected else "more"
        raise DataError(
            f"{path}: its header promises {expected:,} bytes, it holds {held}; get the file again"
        )
