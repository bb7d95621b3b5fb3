"""Labelled series in the text formats of the UCR and UEA archives: `.ts`, and the `.arff` of Weka.

Of `.ts`: `@` lines, then a series a line; channels stand between colons, values between commas, the label
comes last. Of `.arff`: an attribute for each step and one for the label; several channels are one attribute,
a quoted text whose lines (`\\n`) are the channels. A missing value is `?` or NaN.
"""

import csv
from collections.abc import Iterator, Sequence

from regard.errors import DataError, quoted
from regard.files.lines import Refuse, refuse_at_once
from regard.files.measurements import Stretch, number_of, whole

SUFFIXES = {".ts": "ts", ".arff": "arff"}
Record = tuple[int, Stretch, str | None]
"""Line number, series, and label where the file has such."""


def ts_records(file: str, lines: Iterator[str], refuse: Refuse = refuse_at_once) -> Iterator[Record]:
    labelled, dimensions, in_data = False, 0, False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not in_data:
            name, *rest = text.split()
            match name.lower():
                case "@data":
                    in_data = True
                case "@classlabel":
                    labelled = rest[:1] != [] and rest[0].lower() == "true"
                case "@targetlabel" if rest[:1] and rest[0].lower() == "true":
                    raise DataError(f"{file}:{number}: targets are numbers to predict, not labels of series")
                case "@timestamps" if rest[:1] and rest[0].lower() == "true":
                    raise DataError(
                        f"{file}:{number}: series with time stamps in brackets are not read; drop them"
                    )
                case "@dimensions" if rest[:1] and rest[0].isdecimal():
                    dimensions = int(rest[0])
                case _ if not name.startswith("@"):
                    raise DataError(f"{file}:{number}: {quoted(text)} before @data; is this a .ts file?")
            continue
        try:
            yield _ts_record(file, number, text, labelled=labelled, dimensions=dimensions)
        except DataError as fault:
            refuse(fault)


def _ts_record(file: str, number: int, text: str, *, labelled: bool, dimensions: int) -> Record:
    where = f"{file}:{number}"
    *channels, last = text.split(":")
    label = None
    if labelled:
        label = last.strip()
    else:
        channels.append(last)
    if dimensions and len(channels) != dimensions:
        raise DataError(f"{where}: {len(channels)} channels found, @dimensions says {dimensions}")
    return number, _stretch(where, [channel.split(",") for channel in channels]), label


def arff_records(file: str, lines: Iterator[str], refuse: Refuse = refuse_at_once) -> Iterator[Record]:
    n_attributes, relational, label_at, in_data = 0, False, None, False
    inside = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if in_data:
            try:
                yield _arff_record(file, number, text, n_attributes, label_at, relational=relational)
            except DataError as fault:
                refuse(fault)
            continue
        lowered = text.lower()
        if lowered.startswith("@data"):
            in_data = True
        elif lowered.startswith("@end"):
            inside = False
        elif lowered.startswith("@attribute") and not inside:
            if lowered.endswith("relational"):
                relational = inside = True
            if text.endswith("}") or lowered.endswith("string"):
                label_at = n_attributes
            n_attributes += 1
        elif not lowered.startswith(("@relation", "@attribute")):
            raise DataError(f"{file}:{number}: {quoted(text)} before @data; is this an .arff file?")


def _arff_record(
    file: str, number: int, text: str, n_attributes: int, label_at: int | None, *, relational: bool
) -> Record:
    where = f"{file}:{number}"
    try:
        (cells,) = csv.reader([text], quotechar="'" if "'" in text else '"', skipinitialspace=True)
    except csv.Error as fault:
        raise DataError(f"{where}: not a line of .arff ({fault})") from None
    if len(cells) != n_attributes:
        raise DataError(f"{where}: {len(cells)} values found, the file has {n_attributes} attributes")
    label = None if label_at is None else cells.pop(label_at).strip()
    channels = [line.split(",") for line in cells[0].split("\\n")] if relational else [cells]
    return number, _stretch(where, channels), label


def _stretch(where: str, channels: Sequence[Sequence[str]]) -> Stretch:
    """Channels of one length, with missing values at the ends of those that are shorter left out together."""
    columns = [
        [number_of(cell, f"{where}: step {step}") for step, cell in enumerate(channel, 1)]
        for channel in channels
    ]
    if len({*map(len, columns)}) > 1:
        raise DataError(f"{where}: channels of {', '.join(str(len(column)) for column in columns)} steps")
    rows = [list(row) for row in zip(*columns, strict=True)]
    while rows and all(value is None for value in rows[-1]):
        rows.pop()
    if not rows:
        raise DataError(f"{where}: the series has no value")
    return whole(rows)
