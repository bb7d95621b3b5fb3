"""Format of a file, by its name, and the cells and objects that it holds."""

import csv
import json
import math
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from regard.errors import DataError
from regard.files import captions, conll, semeval, speech, squad
from regard.files.idx import is_idx
from regard.files.lines import UNDECODED, Refuse, refuse_at_once

SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")


def file_format(path: str) -> str:
    """Format by suffix, below `.gz`: `tsv`, `csv`, `dat`, `jsonl`, `parquet`, `conll`, `semeval`, `squad`,
    `ts`, `arff`, `npy`, `npz`, `idx` (by its end, ubyte), `captions` (by its name) or `text`; `folder` for a
    name that ends in `/`.
    """
    if path.endswith("/"):
        return "folder"
    if is_idx(path):
        return "idx"
    if captions.NAMES.fullmatch(Path(path).name):
        return "captions"
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    formats = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
    formats |= {semeval.SUFFIX: "semeval", squad.SUFFIX: "squad"}
    formats |= {".dat": "dat", ".ts": "ts", ".arff": "arff", ".npy": "npy", ".npz": "npz"}
    formats |= dict.fromkeys(SPREADSHEETS, "spreadsheet")
    return "conll" if suffix in conll.SUFFIXES else formats.get(suffix, "text")


def kind_of(value: object) -> str:
    """Name the type of a value that should have been a text, in the words of JSON where it has any."""
    if value is None:
        return "null"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number" if math.isfinite(value) else "not a number"
    names = {dict: "an object", list: "an array", bool: "true or false"}
    return names.get(type(value), f"of type {type(value).__name__}")


def text_cell(where: str, name: str, value: object, *, strip: bool = True) -> str:
    """A cell of text; the numbers of JSON and Parquet have become texts already."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        raise DataError(f"{where}: {name} is {kind_of(value)}; it must be a string, a number, true or false")
    if "\0" in value or UNDECODED.search(value):
        raise DataError(f"{where}: {name} holds an escaped NUL or half of a surrogate pair, which is no text")
    return value.strip() if strip else value


def aligned_cells(
    files: Sequence[str], texts: Sequence[Iterator[str]], refuse: Refuse = refuse_at_once
) -> Iterator[tuple[int, list[str]]]:
    """Line number and one cell per file, for text files that belong together line by line."""
    for number, aligned in enumerate(zip_longest(*texts), 1):
        cells = [cell for cell in aligned if cell is not None]
        if len(cells) < len(files):
            pairs = zip(aligned, texts, strict=True)
            counts = [number - (cell is None) + sum(1 for _ in rest) for cell, rest in pairs]
            longest, shortest = counts.index(max(counts)), counts.index(min(counts))
            refuse(
                DataError(
                    f"{files[longest]} has {counts[longest]:,} lines but {files[shortest]} has "
                    f"{counts[shortest]:,}: {files[longest]}:{number} is the first without a partner; "
                    "the files must belong together line by line"
                )
            )
            return
        yield number, cells


def file_cells(file: str, text: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each record of a TSV, CSV or plain text file, a header included."""
    match file_format(file):
        case "csv":
            first = next(text, "")
            if speech.is_ljspeech(file, first):
                return speech.ljspeech(file, first, text)
            return _csv_cells(file, chain([first], text))
        case "dat":
            return ((number, line.split("::")) for number, line in enumerate(text, 1) if line.strip())
        case "tsv":
            return ((number, line.split("\t")) for number, line in enumerate(text, 1) if line.strip(" "))
        case _:
            return ((number, [line]) for number, line in enumerate(text, 1))


def _csv_cells(file: str, text: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """A record may span lines and is known by its first; `csv` bounds a field at 131,072 characters."""
    reader = csv.reader((line + "\n" for line in text), strict=True)
    start = 1
    try:
        for cells in reader:
            if cells:
                yield start, cells
            start = reader.line_num + 1
    except csv.Error as fault:
        longer = "? A text that is longer belongs into .jsonl" if "field limit" in str(fault) else "?"
        raise DataError(
            f"{file}:{start}: not valid CSV ({fault}); is a quote left open or not doubled{longer}"
        ) from fault


def file_objects(
    file: str, text: Iterator[str], refuse: Refuse = refuse_at_once
) -> Iterator[tuple[int, dict[str, object]]]:
    """Line number and object of each line of a JSON lines file."""
    for number, line in enumerate(text, 1):
        if not line.strip():
            continue
        try:
            # Numbers keep their spelling: a label 1.0 stays "1.0", and huge ones cost nothing.
            record = json.loads(line, parse_int=str, parse_float=str)
        except (ValueError, RecursionError) as fault:
            refuse(DataError(f"{file}:{number}: not valid JSON ({fault})"))
            continue
        if not isinstance(record, dict):
            refuse(DataError(f"{file}:{number}: each line must be a JSON object, such as {{'text': '…'}}"))
            continue
        yield number, record
