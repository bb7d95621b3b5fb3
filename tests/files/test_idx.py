import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from regard.errors import DataError
from regard.files.idx import read_idx


def idx(array: np.ndarray, kind: int = 0x08) -> bytes:
    return bytes([0, 0, kind, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


PIXELS = np.random.default_rng(0).integers(0, 256, (5, 3, 7), np.uint8)


@pytest.mark.parametrize("packed", [False, True])
def test_what_was_written_is_read(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / f"train-images-idx3-ubyte{'.gz' * packed}"
    path.write_bytes(gzip.compress(idx(PIXELS)) if packed else idx(PIXELS))
    assert np.array_equal(read_idx(path), PIXELS)
    numbers = PIXELS[:, 0].astype(">f4")
    path.write_bytes(gzip.compress(idx(numbers, 0x0D)) if packed else idx(numbers, 0x0D))
    assert np.array_equal(read_idx(path), numbers)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "no IDX file"),
        (b"\0\0\x08", "no IDX file"),
        (b"\x89PNG1234", "no IDX file"),
        (b"\0\0\x08\x03\0\0\0\x05", "ends within its header"),
        (idx(PIXELS)[:-1], "its header promises 105 bytes, it holds only 104; get the file again"),
        (idx(PIXELS) + b"x", "promises 105 bytes, it holds more"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "an array of more than 4,000,000,000 bytes"),
    ],
)
def test_what_is_damaged_is_refused_before_memory_is_taken(
    tmp_path: Path, packed: bool, content: bytes, fault: str
) -> None:
    path = tmp_path / f"images-ubyte{'.gz' * packed}"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError, match=fault):
        read_idx(path)


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "images-ubyte.gz"
    path.write_bytes(gzip.compress(idx(PIXELS))[:-20])
    with pytest.raises(DataError, match="cannot be read as IDX"):
        read_idx(path)
