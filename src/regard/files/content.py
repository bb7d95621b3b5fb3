"""What a whole file holds: uploaded, or named by somebody at this machine."""

from pathlib import Path

from regard.errors import DataError
from regard.files.lines import resolve

File = bytes | Path
"""Of a path only the user of this machine can be the author: what comes over HTTP is bytes."""
MOST_BYTES = 1_000_000_000


def content(file: File, name: str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a file; DataError if it is no file, cannot be read, or holds more than `most`."""
    if isinstance(file, bytes):
        found = file
    else:
        name = str(file)
        try:
            with resolve(name).open("rb") as opened:
                found = opened.read(most + 1)
        except OSError as fault:
            raise DataError(f"{name}: cannot be read ({fault.strerror})") from fault
    if len(found) > most:
        raise DataError(f"{name}: has more than {most:,} bytes; give a smaller file")
    return found
