"""Files → lines: found, decompressed, decoded and bounded, or refused with the line and its fault.

Lines end at LF or CR LF and nowhere else: `str.splitlines` also breaks at U+2028, U+0085 and others, and
one such character would shift an aligned file by a line from there on.
"""

import codecs
import glob
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from regard.errors import DataError, did_you_mean

MAX_LINE_BYTES = 1_000_000
MAX_SHOWN = 1000
"""Characters kept of a line that was refused."""
SHIPPED = "regard:"
SAMPLES = Path(__file__).parents[1] / "samples"
UNDECODED = re.compile("[\ud800-\udfff]")

Refuse = Callable[[DataError], None]
"""Handler of a record that cannot be used: raises, or notes the fault and goes on with the next."""


def refuse_at_once(fault: DataError) -> None:
    raise fault


def expand(path: str, base: Path | None = None) -> list[str]:
    """The files a name stands for: itself, or all that match a pattern like `part-*.gz`, in their order."""
    if path.startswith(SHIPPED) or not glob.has_magic(path) or ((base or Path()) / path).exists():
        return [path]
    matches = sorted(glob.glob(path, root_dir=base, recursive=True))
    if not matches:
        raise DataError(f"{path}: no file matches this pattern; paths start from {base or Path()}")
    return matches


def resolve(path: str, base: Path | None = None) -> Path:
    """The regular file, or with a / at its end the folder, that `path` names.

    It is shipped with us (`regard:NAME/FILE`), absolute, or below `base`.
    """
    if path.startswith(SHIPPED):
        shipped = {f"{file.parent.name}/{file.name}": file for file in sorted(SAMPLES.glob("*/*.gz"))}
        if path.removeprefix(SHIPPED) not in shipped:
            raise DataError(f"{path}: not shipped with regard; shipped are {', '.join(shipped)}")
        return shipped[path.removeprefix(SHIPPED)]
    file = (base or Path()) / path
    try:
        if path.endswith("/") and file.is_dir():
            return file
        if file.is_file():
            return file
        if file.exists():
            if file.is_dir():
                raise DataError(f"{path}: is a folder, not a file; if it is the data, end its name with /")
            raise DataError(f"{path}: is a special file, not a data file")
        if file.is_symlink():
            raise DataError(f"{path}: is a link that leads nowhere; put the file where it points")
        siblings = (
            [sibling.name for sibling in islice(file.parent.iterdir(), 1000)] if file.parent.is_dir() else []
        )
    except OSError as fault:
        raise DataError(f"{path}: cannot be read ({fault.strerror})") from fault
    raise DataError(f"{path}: no such file{nearest(file.name, siblings)}")


def lines(
    file: str,
    *,
    encoding: str = "utf-8",
    base: Path | None = None,
    refuse: Refuse = refuse_at_once,
) -> Iterator[str]:
    """The decoded lines of one file without their ends; memory stays bounded whatever the file holds."""
    path = resolve(file, base)
    try:
        raw = gzip.GzipFile(path) if path.suffix.lower() == ".gz" else path.open("rb")
    except OSError as fault:
        raise DataError(f"{file}: cannot be read ({fault.strerror})") from fault
    text = stream_lines(raw, file, encoding=encoding, refuse=refuse)
    first = next(text, None)
    if first is None:
        raise DataError(f"{file}: is empty; give a file with at least one record")
    yield first
    yield from text


def stream_lines(
    raw: gzip.GzipFile | BinaryIO,
    name: str,
    *,
    encoding: str = "utf-8",
    refuse: Refuse = refuse_at_once,
) -> Iterator[str]:
    """The decoded lines of an open stream, which is closed at its end; `name` is what errors call it.

    A refused line keeps its place: with replacement characters, or cut short.
    """
    number = 0
    try:
        with raw:
            decoder = codec(name, encoding)
            text = TextIOWrapper(raw, encoding=decoder, errors="surrogateescape", newline="\n")
            while line := text.readline(MAX_LINE_BYTES + len("\r\n")):
                number += 1
                if fault := _line_fault(f"{name}:{number}", line, text, decoder, encoding):
                    refuse(fault)
                    line = UNDECODED.sub("\ufffd", line[:MAX_SHOWN]).replace("\0", "\ufffd")
                yield line.removesuffix("\n").removesuffix("\r")
    except (gzip.BadGzipFile, EOFError, zlib.error) as damage:
        raise DataError(
            f"{name}: damaged gzip data after line {number} ({damage}); get the file again"
        ) from damage
    except OSError as damage:
        raise DataError(f"{name}: cannot be read ({damage.strerror})") from damage
    except UnicodeError as damage:
        raise DataError(f"{name}: cannot be read as {encoding} after line {number} ({damage})") from damage


def codec(file: str, encoding: str) -> str:
    """Python's name of an encoding; a byte order mark of UTF-8 is skipped."""
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)
    except (LookupError, ValueError) as fault:
        raise DataError(
            f"{file}: data.encoding = {encoding!r} is not a text encoding Python knows"
        ) from fault
    return "utf-8-sig" if name == "utf-8" else name


def _encoded(text: str, codec: str) -> bytes:
    """The very bytes that were decoded to `text`, without a byte order mark."""
    return text.encode(codec, "surrogateescape")[len("".encode(codec)) :]


def _line_fault(where: str, line: str, rest: TextIOWrapper, codec: str, encoding: str) -> DataError | None:
    """Why a line cannot be text, if so; the rest of one that is too long is read past."""
    if len(line) > MAX_LINE_BYTES // 4 and (size := _whole_size(line, rest, codec)) > MAX_LINE_BYTES:
        measured = f"{size:,}" if size < 100 * MAX_LINE_BYTES else f"over {size:,}"
        return DataError(
            f"{where}: the line has {measured} bytes, the limit is {MAX_LINE_BYTES:,}; split or drop it"
        )
    if undecoded := UNDECODED.search(line):
        return _wrong_bytes(where, line, undecoded.start(), codec, encoding)
    if "\0" in line:
        return DataError(
            f"{where}: holds a NUL character, so it is no {encoding} text; "
            'for UTF-16 set data.encoding = "utf-16-le" or "utf-16-be"'
        )
    return None


def _whole_size(line: str, rest: TextIOWrapper, codec: str) -> int:
    """Size in bytes, measured in bounded chunks; counting is given up a hundred limits later."""
    size = len(_encoded(line.rstrip("\r\n"), codec))
    if size > MAX_LINE_BYTES:
        while not line.endswith("\n") and (line := rest.readline(MAX_LINE_BYTES)):
            size += len(_encoded(line.rstrip("\r\n"), codec))
            if size >= 100 * MAX_LINE_BYTES:
                break
    return size


def _wrong_bytes(where: str, line: str, index: int, codec: str, encoding: str) -> DataError:
    raw, offset = _encoded(line, codec), len(_encoded(line[:index], codec))
    return DataError(
        f"{where}: byte {offset + 1} of the line (0x{raw[offset]:02x}) is not valid {encoding}; "
        f"{decoding_remedy(raw, 'line')}"
    )


def decoding_remedy(raw: bytes, what: str) -> str:
    """Advice for a line, or something else, that is not in the encoding it should be in."""
    if raw.startswith(b"\x1f\x8b"):
        return "the file is gzip-compressed, so its name must end in .gz"
    if likely := _likely_encoding(raw):
        return (
            f'the {what} is valid {likely}: say so with data.encoding = "{likely}" in the recipe or '
            f"--encoding {likely}, or convert the file to UTF-8"
        )
    return 'declare the encoding (data.encoding = "windows-1252", "gb18030" …) or convert the file to UTF-8'


def _likely_encoding(raw: bytes) -> str | None:
    """UTF-16 by its mark; GB 18030 if it decodes and most characters take two high bytes, unlike Latin-1."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8", "gb18030"):
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if sum(byte > 0x7F for byte in raw) >= 1.5 * sum(char > "\x7f" for char in text):
            return encoding
    return None


def nearest(name: str, names: Iterable[str]) -> str:
    """Suggest the nearest name only: a folder or a header may hold too many to list."""
    return did_you_mean(name, get_close_matches(name, list(names), n=1, cutoff=0.5))
