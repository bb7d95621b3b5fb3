"""Folders and files that are whole or absent, through kills, power cuts and full disks; and show damage.

Everything is written under another name and forced to the disk before it gets its own. A sealed folder
also holds the sha256 of every file, so that whoever reads it can know that it is what was written.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

MANIFEST = "manifest.json"


def reached(moment: str) -> None:
    """Called at every named moment of a write. It does nothing; the crash tests kill the process here."""


def write_folder(final: Path, fill: Callable[[Path], None]) -> None:
    """`fill` gets an empty folder; what it leaves there becomes `final`, replacing what was there before."""
    partial, old = _hidden(final, "partial"), _hidden(final, "old")
    clear(partial)
    reached("before the folder")
    partial.mkdir(parents=True)
    try:
        fill(partial)
        reached("before the sync")
        for path in sorted(partial.rglob("*")):
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
    """Replace a file's text, or leave the file as it was."""
    fill_file(path, lambda partial: partial.write_text(text, "utf-8"))


def fill_file(path: Path, fill: Callable[[Path], object]) -> None:
    """`fill` gets the name of a file to write, which then replaces what was there."""
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


def remove_folder(folder: Path) -> None:
    """Gone at once for whoever looks, however long deleting takes: a half-deleted folder has another name."""
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
    """Undo what killed writes and removals left in a folder of ours; what was being replaced returns."""
    for old in parent.glob(".*.old"):
        name = parent / old.name[1:].removesuffix(".old")
        if not name.exists():
            old.rename(name)
    for kind in ("partial", "old", "gone"):
        for leftover in parent.glob(f".*.{kind}"):
            clear(leftover)


def seal(folder: Path) -> None:
    """Write down what every file of the folder is."""
    (folder / MANIFEST).write_text(_manifest(folder), "utf-8")


def damage(folder: Path) -> str | None:
    """What differs from the folder that was sealed, naming the file; None if it is the same to the bit."""
    try:
        found = _manifest(folder)
        text = (folder / MANIFEST).read_text("utf-8")
        if text == found:
            return None
        sealed, actual = json.loads(text)["sha256"], json.loads(found)["sha256"]
        for name in sorted(sealed.keys() | actual.keys()):
            if sealed.get(name) != actual.get(name):
                how = "is missing" if name not in actual else "is not what was written"
                return f"{name} {how}"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return f"{MANIFEST} is missing or not what was written"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest(folder: Path) -> str:
    """The one text that describes a folder: comparing it with the sealed text misses no bit of either."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != MANIFEST)
    sums = {path.relative_to(folder).as_posix(): sha256(path) for path in paths}
    return json.dumps({"sha256": sums}, indent=1) + "\n"


def _name(fault: BaseException, path: Path) -> None:
    """A disk that is full says so of no file; whoever tells of it must know which."""
    if isinstance(fault, OSError) and fault.errno is not None and fault.filename is None:
        fault.filename = str(path)


def _hidden(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{kind}")


def _sync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
