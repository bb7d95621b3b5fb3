"""Blocks of sound as somebody has them → samples of one channel: raw bytes, arrays of numbers."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from regard.errors import DataError
from regard.files.resample import Samples
from regard.files.sound import LOUDEST, pcm

Block = bytes | bytearray | memoryview | np.ndarray[Any, Any]
MOST_CHANNELS = 256


def mono(blocks: Iterable[Block]) -> Iterator[Samples]:
    """Samples from −1 to 1 of each block; bytes are 16-bit little-endian samples, and may be cut anywhere."""
    left = b""
    for number, block in enumerate(blocks, 1):
        if isinstance(block, bytes | bytearray | memoryview):
            samples, left = pcm(bytes(block), left)
            yield samples
        else:
            yield _of_array(block, f"block {number}")


def _of_array(block: Any, where: str) -> Samples:
    if not isinstance(block, np.ndarray):
        raise DataError(
            f"{where}: {type(block).__name__}; give bytes of 16-bit samples, or a NumPy array of them"
        )
    if block.ndim > 2 or (block.ndim == 2 and not 1 <= block.shape[1] <= MOST_CHANNELS):
        raise DataError(f"{where}: an array of shape {block.shape}; give samples, or samples × channels")
    if block.dtype == np.int16:
        block = block.astype(np.float32) / np.float32(LOUDEST + 1)
    elif block.dtype.kind != "f":
        raise DataError(f"{where}: samples of {block.dtype}; give int16, or floats from −1 to 1")
    samples: Samples = block.astype(np.float32)
    if not np.isfinite(samples).all():
        raise DataError(f"{where}: holds samples that are no numbers")
    return samples.mean(1, dtype=np.float32) if samples.ndim == 2 else samples
