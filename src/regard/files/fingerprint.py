"""Checksums of data files (SHA-256), remembered by size and time, so that large files are read once.

Rows may lead to files of their own, such as pictures: all of those of a data file are remembered as one.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard import durable
from regard.errors import DataError
from regard.files.lines import expand, resolve

Known = dict[str, list[int | str]]
"""Path → size, times, inode and checksum; of many files the sum of their checksums."""
SUM = re.compile("[0-9a-f]{64}")
LeadsTo = Callable[[str], Iterable[Path]]
"""The files that the rows of a data file lead to."""


def _nowhere(name: str) -> Iterable[Path]:
    return ()


def fingerprint(files: Sequence[str], base: Path | None = None, memory: Known | None = None) -> str:
    """SHA-256 over the files' own SHA-256 sums: equal when the same bytes come in the same files' order."""
    total = hashlib.sha256()
    for file in files:
        total.update(bytes.fromhex(_sum(file, base, {} if memory is None else memory)))
    return total.hexdigest()


def fingerprints(
    names: Iterable[str], base: Path, memo: Path, leads_to: LeadsTo = _nowhere
) -> dict[str, str]:
    """Checksums by name, which may be a pattern or a folder; `memo` is a file that remembers them."""
    memory = _remembered(memo)
    before = json.dumps(memory)
    sums = {name: _all_of(name, base, memory, list(leads_to(name))) for name in names}
    if json.dumps(memory) != before:
        with suppress(OSError):
            memo.parent.mkdir(parents=True, exist_ok=True)
            durable.write_file(memo, json.dumps(memory, ensure_ascii=False, indent=1) + "\n")
    return sums


def _remembered(memo: Path) -> Known:
    """The entries of the memo that are as `fingerprints` writes them; none where it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        value = durable.read_json(memo)
        if isinstance(value, dict):
            return {name: entry for name, entry in value.items() if _is_entry(entry)}
    return {}


def _is_entry(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and SUM.fullmatch(str(value[-1])) is not None


def _all_of(name: str, base: Path, memory: Known, others: Sequence[Path]) -> str:
    """The fingerprint of a data file and of the files that its rows lead to."""
    sum_of_file = "" if name.endswith("/") else fingerprint(expand(name, base), base, memory)
    return (
        hashlib.sha256(f"{sum_of_file} {_sum_of_many(name, base, memory, others)}".encode()).hexdigest()
        if others
        else sum_of_file
    )


def _sum_of_many(name: str, base: Path, memory: Known, paths: Sequence[Path]) -> str:
    """Checksum of the names and contents of many files, relative to their data file."""
    place, stamp, total = (base / name).resolve(), hashlib.sha256(), hashlib.sha256()
    try:
        for path in paths:
            stat = path.stat()
            stamp.update(
                f"{path} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}\n".encode()
            )
        *was, digest = memory.get(f"{place}/*", [""])
        if was != [stamp.hexdigest()]:
            for path in paths:
                total.update(f"{os.path.relpath(path, place.parent)} {durable.sha256(path)}\n".encode())
            digest = total.hexdigest()
            memory[f"{place}/*"] = [stamp.hexdigest(), digest]
    except OSError as fault:
        raise DataError(
            f"{name}: leads to {fault.filename}, which cannot be read ({fault.strerror})"
        ) from fault
    return str(digest)


def _sum(file: str, base: Path | None, memory: Known) -> str:
    path = resolve(file, base).resolve()
    try:
        stat = path.stat()
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
        *was, digest = memory.get(str(path), [""])
        if was != stamp:
            digest = durable.sha256(path)
            memory[str(path)] = [*stamp, digest]
    except OSError as fault:
        raise DataError(f"{file}: cannot be read ({fault.strerror})") from fault
    return str(digest)
