"""Atomic writes of files and folders, which survive kills, power cuts and full disks; safe reads; checksums.

Everything is written under a temporary name and synced to disk before it is renamed. A sealed folder also
holds the sha256 of every file, so that damage is detected.
"""

import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
MAX_BYTES = 128 * 2**20
"""Largest file that is read whole."""


def reached(moment: str) -> None:
    """Mark a named moment of a write; it does nothing, but the crash tests kill the process here."""


def write_folder(final: Path, fill: Callable[[Path], None]) -> None:
    """Write a folder atomically: `fill` fills an empty one, which then replaces `final`."""
    partial, old = _hidden(final, "partial"), _hidden(final, "old")
    clear(partial)
    reached("before the folder")
    partial.mkdir(parents=True)
    try:
        fill(partial)
        reached("before the sync")
        mode = stat.S_IMODE(partial.stat().st_mode) & 0o666
        for path in sorted(partial.rglob("*")):
            if path.is_file():
                path.chmod(mode)  # some libraries let only the owner read what they write
            _sync(path)
        _sync(partial)
        reached("before the rename")
        if final.exists():
            clear(old)
            final.rename(old)
            reached("between the renames")
        partial.rename(final)
        reached("after the rename")
        _sync(final.parent)
    except BaseException as fault:
        if old.exists() and not final.exists():
            old.rename(final)
        clear(partial)
        _name(fault, final)
        raise
    clear(old)
    reached("at the end")


def write_file(path: Path, text: str) -> None:
    """Write a text file atomically."""
    fill_file(path, lambda partial: partial.write_text(text, "utf-8"))


def fill_file(path: Path, fill: Callable[[Path], object]) -> None:
    """Write a file atomically: `fill` writes a temporary file, which then replaces `path`."""
    partial = _hidden(path, "partial")
    try:
        fill(partial)
        _sync(partial)
        reached(f"before {path.name} is renamed")
        partial.replace(path)
        reached(f"after {path.name} is renamed")
        _sync(path.parent)
    except BaseException as fault:
        partial.unlink(missing_ok=True)
        _name(fault, path)
        raise


def fill_named(path: Path, fill: Callable[[Path], object]) -> None:
    """Write a file that a user named atomically; a link or a device is written through."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        fill(path)
    else:
        fill_file(path, fill)


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """Read a whole file that may be anybody's; OSError if larger, or a pipe, which could block for ever."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes", str(path))
    return content


def read_json(path: Path, most: int = MAX_BYTES) -> Any:
    """Read a value of JSON from a file that may be anybody's; OSError, ValueError or RecursionError."""
    return json.loads(read_bytes(path, most).decode("utf-8"))


def remove_folder(folder: Path) -> None:
    """Remove a folder atomically: it is renamed first, however long deleting takes."""
    gone = _hidden(folder, "gone")
    clear(gone)
    reached("before the removal")
    folder.rename(gone)
    reached("amid the removal")
    clear(gone)


def clear(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def mend(parent: Path) -> None:
    """Clean up after killed writes and removals in a folder of ours, restoring what was being replaced."""
    for old in parent.glob(".*.old"):
        name = parent / old.name[1:].removesuffix(".old")
        if not name.exists():
            old.rename(name)
    for kind in ("partial", "old", "gone"):
        for leftover in parent.glob(f".*.{kind}"):
            clear(leftover)


def seal(folder: Path) -> None:
    """Write the checksums of all files into the folder."""
    (folder / MANIFEST).write_text(_manifest(folder), "utf-8")


def damage(folder: Path) -> str | None:
    """Describe the first difference from the sealed folder; None if it is intact, to the bit."""
    try:
        current = _manifest(folder)
        text = read_bytes(folder / MANIFEST).decode("utf-8")
        if text == current:
            return None
        sealed, actual = json.loads(text)["sha256"], json.loads(current)["sha256"]
        for name in sorted(sealed.keys() | actual.keys()):
            if sealed.get(name) != actual.get(name):
                how = "is missing" if name not in actual else "has changed since it was written"
                return f"{name} {how}"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return f"{MANIFEST} is missing or has changed since it was written"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest(folder: Path) -> str:
    """Canonical text of a folder's checksums; comparing texts, a single changed bit is noticed."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != MANIFEST)
    sums = {path.relative_to(folder).as_posix(): sha256(path) for path in paths}
    return json.dumps({"sha256": sums}, indent=1) + "\n"


def _name(fault: BaseException, path: Path) -> None:
    """Add the path to an error that has none, such as that of a full disk."""
    if isinstance(fault, OSError) and fault.errno is not None and fault.filename is None:
        fault.filename = str(path)


def _hidden(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{kind}")


def _sync(path: Path) -> None:
    """Sync a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
