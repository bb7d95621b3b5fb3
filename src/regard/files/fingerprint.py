"""What data files are, by SHA-256; remembered by size and time, so that large files are read for it once."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from regard import durable
from regard.errors import DataError
from regard.files.lines import expand, resolve

Known = dict[str, list[int | str]]
"""By absolute path: size, times and inode as they were, and the sum."""


def fingerprint(files: Sequence[str], base: Path | None = None, known: Known | None = None) -> str:
    """SHA-256 over the files' own SHA-256 sums: equal when the same bytes come in the same files' order."""
    total = hashlib.sha256()
    for file in files:
        total.update(bytes.fromhex(_sum(file, base, {} if known is None else known)))
    return total.hexdigest()


def fingerprints(names: Iterable[str], base: Path, memo: Path) -> dict[str, str]:
    """By name, which may be a pattern; `memo` is a file that remembers them."""
    known: Known = {}
    with suppress(OSError, ValueError, TypeError):
        known = dict(json.loads(memo.read_text("utf-8")))
    before = json.dumps(known)
    found = {name: fingerprint(expand(name, base), base, known) for name in names}
    if json.dumps(known) != before:
        with suppress(OSError):
            memo.parent.mkdir(parents=True, exist_ok=True)
            durable.write_file(memo, json.dumps(known, ensure_ascii=False, indent=1) + "\n")
    return found


def _sum(file: str, base: Path | None, known: Known) -> str:
    path = resolve(file, base).resolve()
    try:
        stat = path.stat()
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
        *was, digest = known.get(str(path), [""])
        if was != stamp:
            digest = durable.sha256(path)
            known[str(path)] = [*stamp, digest]
    except OSError as fault:
        raise DataError(f"{file}: cannot be read ({fault.strerror})") from fault
    return str(digest)
