"""Bytes of a whole file: uploaded, or named by somebody at this machine."""

from pathlib import Path

from regard.errors import DataError
from regard.files.lines import resolve

File = bytes | Path
"""A file: its bytes, or a path. Only the user of this machine can give a path; HTTP brings bytes."""
MOST_BYTES = 1_000_000_000


def content(file: File, name: str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a file; DataError if it is no file, cannot be read, or holds more than `most`."""
    if isinstance(file, bytes):
        held = file
    else:
        name = str(file)
        try:
            with resolve(name).open("rb") as opened:
                held = opened.read(most + 1)
        except OSError as fault:
            raise DataError(f"{name}: cannot be read ({fault.strerror})") from fault
    if len(held) > most:
        raise DataError(f"{name}: has more than {most:,} bytes; give a smaller file")
    return held
