"""Answers in forms of their own (subtitles, lines with times), and sound that comes in on standard input."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from regard.cli import console
from regard.cli.answers import Counted, Form, Source, answers, asked
from regard.cli.files import write
from regard.errors import DataError, RecipeError
from regard.text.sanitize import one_line, printable

if TYPE_CHECKING:
    from regard import Trained
    from regard.fields.field import Field
    from regard.files.row import Row
    from regard.tasks.task import Task

LIVE = "-"
"""The input that stands for sound on standard input."""
AT_ONCE = 1 << 16
"""Bytes that are read at once at most; fewer where fewer are there."""
PLAIN = ("text", "json")
CONTAINERS = {
    b"RIFF": "a WAV file",
    b"fLaC": "a FLAC file",
    b"OggS": "an Ogg file",
    b"ID3\x03": "an MP3 file",
}
CLEAR = "\r\x1b[K"


def checked_form(form: str, task: "type[Task] | Task") -> str:
    """RecipeError for a form that answers of this task do not have."""
    forms = (*PLAIN, *task.forms)
    if form not in forms:
        raise RecipeError(f"--format {form}: {task.called} answers as {', '.join(forms)}; give one of them")
    return form


def spread(arguments: Sequence[str], fields: "Mapping[str, Field]") -> list[str]:
    """Arguments with the files of a folder in its place, for a model that is asked with files."""
    from regard.files.folder import unclassified

    (field, *others) = fields.values()
    suffixes: frozenset[str] = getattr(field, "suffixes", frozenset())
    if others or not suffixes:
        return list(arguments)
    paths: list[str] = []
    for argument in arguments:
        folder = Path(argument)
        if folder.is_dir():
            paths += [str(folder / path) for path, _ in unclassified(folder, f"{argument}/", suffixes)]
        else:
            paths.append(argument)
    return paths


def write_forms(
    trained: "Trained", source: Source, search: dict[str, Any], form: str, out: Path | None
) -> None:
    """Prints answers in a form, one after the other; into a folder, each goes to a file of its own."""
    source.check()
    rows = source.rows(partial(asked, trained, source))
    n, counted = 0, Counted(trained)
    for n, (row, answer) in enumerate(answers(trained, rows, search, one_by_one=False), 1):
        counted.add(answer)
        name = named(row)
        text = answer.as_form(form, name, n if out is None else 1) if answer is not None else ""
        if out is None:
            if form in trained.task.single_forms and n > 1:
                raise DataError(f"--format {form}: is about one recording; give --out FOLDER for several")
            sys.stdout.write("".join(f"{line}\n" for line in map(one_line, text.splitlines())))
            sys.stdout.flush()
        else:
            out.mkdir(parents=True, exist_ok=True)
            write(out / f"{name}.{form}", f"{text}\n" if text else "")
    if out is not None:
        console.line(f"wrote {out}: {n:,} file{'s' * (n != 1)}")
    counted.report()


def named(row: "Row") -> str:
    """What a recording is called: its file without the suffix; numbered where there is no file."""
    cell = next(iter(row.cells.values()))
    path = cell.get("path") if isinstance(cell, dict) else cell
    name = Path(path).stem if isinstance(path, str) else f"recording{row.line}"
    return "_".join(name.split())


def write_heard(trained: "Trained", rate: int, search: dict[str, Any], form: Form, kind: str) -> None:
    """What is said in sound on standard input, while it comes in."""
    if sys.stdin.isatty():
        raise DataError(
            "-: sound comes in on standard input, as in: "
            "arecord -q -t raw -f S16_LE -r 16000 | regard predict RUN -"
        )
    rate, blocks = _incoming(rate)
    parts = trained.listen(blocks, rate=rate, **search)
    if kind in trained.task.forms:
        sys.stdout.write(trained.task.of_partials(parts).as_form(kind, "stdin", 1) + "\n")
    elif form.json:
        for part in parts:
            console.write_json(part.model_dump(mode="json"))
            sys.stdout.flush()
    elif sys.stdout.isatty():
        _show(parts)
    else:
        for part in parts:
            sys.stdout.write(one_line(part.text))
            sys.stdout.flush()
        sys.stdout.write("\n")


def _incoming(rate: int) -> "tuple[int, Iterator[Any]]":
    """Samples a second, and blocks of standard input as they come; a WAV file says what it is."""
    from regard.files.sound import wav_head

    source: Any = sys.stdin.buffer
    begin: bytes = source.read(4)
    if begin == b"RIFF":
        rate, n_channels = wav_head(source, "standard input")
        return rate, _frames(source, n_channels)
    if kind := CONTAINERS.get(begin):
        raise DataError(
            f"standard input: begins like {kind}; give the file by its name, or raw 16-bit samples (--rate)"
        )
    return rate, chain([begin], iter(lambda: source.read1(AT_ONCE), b""))


def _frames(source: Any, n_channels: int) -> "Iterator[Any]":
    """Samples × channels of what comes."""
    import numpy as np

    left, size = b"", 2 * n_channels
    while block := source.read1(AT_ONCE):
        block = left + block
        whole = len(block) // size * size
        left = block[whole:]
        yield np.frombuffer(block[:whole], "<i2").reshape(-1, n_channels)


def _show(parts: "Iterator[Any]") -> None:
    """On a terminal: what is certain, and dim behind it what is not."""
    current = ""
    for part in parts:
        current += printable(part.text)
        width = max(20, console.OUT.width - 1)
        while cell_len(current) > width and (cut := current.rfind(" ", 0, width)) > 0:
            sys.stdout.write(f"{CLEAR}{current[:cut]}\n")
            current = current[cut + 1 :]
        rest = printable(part.rest)[: max(0, width - cell_len(current))]
        sys.stdout.write(f"{CLEAR}{current}\x1b[2m{rest}\x1b[0m")
        sys.stdout.flush()
    sys.stdout.write("\n")
