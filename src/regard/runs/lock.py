"""Locks: one training per run folder, one writer at a time of what runs share.

The operating system holds the lock and releases it when the process ends, however it ends; the file says who
holds it. A folder shared by several machines is protected only by the host's name in the file.
"""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.errors import RunError

NAME = "lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder, creating it if needed; if it was created and is still empty afterwards, it
    is removed.
    """
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise RunError(
            f"{folder}: cannot be written ({error.strerror}); choose another folder with run=NAME"
        ) from None
    try:
        _take(folder, descriptor)
        try:
            _sign(folder, descriptor)
            yield
        finally:
            (folder / NAME).unlink(missing_ok=True)
    finally:
        os.close(descriptor)
        if not existed:
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Lock a file, waiting for another process of this machine that holds it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_held(folder: Path) -> bool:
    """True if a training runs there, according to the file; taking the lock could disturb it."""
    try:
        holder = _holder((folder / NAME).read_bytes()[:1000])
        pid = holder.get("pid")
        if holder.get("host") == socket.gethostname() and isinstance(pid, int):
            os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return isinstance(pid, int)


def _take(folder: Path, descriptor: int) -> None:
    holder = _holder(os.read(descriptor, 1000))
    host = socket.gethostname()
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino != (folder / NAME).stat().st_ino:
            raise BlockingIOError("released and taken again by others meanwhile")
    except BlockingIOError:
        raise RunError(
            f"{folder}: process {holder.get('pid', '?')} on this machine is training here; wait for it, "
            "stop it, or choose another folder with run=NAME"
        ) from None
    except OSError as error:
        raise RunError(
            f"{folder}: cannot be locked ({error.strerror}); choose a folder on another disk with run=NAME"
        ) from None
    if holder.get("host", host) != host:
        raise RunError(
            f"{folder}: process {holder.get('pid')} on {holder['host']} is training here; "
            f"if it has ended, delete {folder / NAME}"
        )


def _sign(folder: Path, descriptor: int) -> None:
    holder = {"pid": os.getpid(), "host": socket.gethostname()}
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)
    except OSError as error:
        raise RunError(
            f"{folder}: cannot be written ({error.strerror}); make "
            "room, or choose another folder with run=NAME"
        ) from None


def _holder(text: bytes) -> dict[str, object]:
    """The process that wrote the file; empty if a crash left it empty or truncated."""
    with suppress(ValueError):
        value = json.loads(text)
        return value if isinstance(value, dict) else {}
    return {}
