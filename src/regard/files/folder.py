"""Folders of files, one folder per class: every file below a folder is a record, the folder's name its label.

    photos/train/cat/001.jpg
    photos/train/cat/indoors/17.jpg      also a cat
    photos/train/dog/002.jpg

Where files lie in no folder of a class, their names may begin with the label: `7_jackson_32.wav` is a 7.
Hidden files are passed over, and so are files with other suffixes than those that are looked for.
"""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from regard.errors import DataError

SPLITS = {
    "train": frozenset({"train", "training", "trn"}),
    "valid": frozenset({"valid", "val", "validation", "dev"}),
    "test": frozenset({"test", "testing", "tst"}),
}
"""Usual names of the folders of splits."""


def splits_of(folder: Path) -> dict[str, str]:
    """Split → the folder inside this one that holds it; none where its folders are classes."""
    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and entry.name[:1] != ".")
    by_split = {split: name for split, words in SPLITS.items() for name in names if name.lower() in words}
    return by_split if "train" in by_split and len(by_split) > 1 else {}


def classified(folder: Path, name: str, suffixes: Collection[str]) -> Iterator[tuple[str, str]]:
    """The path of every file below `folder`, from there, and its class; in the order of their names."""
    if splits := splits_of(folder):
        wanted = ", ".join(f'{split} = ["{name}{inner}/"]' for split, inner in splits.items())
        raise DataError(f"{name}: holds splits, not classes; give each of them: {wanted}")
    is_flat: bool | None = None
    for path, _ in unclassified(folder, name, suffixes):
        label, _, rest = path.partition("/")
        named = label if rest else label_in_name(path)
        if not named:
            raise DataError(
                f"{name}{path}: lies in no folder of a class; put it into one called like its label, or "
                "begin its name with the label, as in 7_jackson_32.wav"
            )
        is_flat = not rest if is_flat is None else is_flat
        if is_flat == bool(rest):
            raise DataError(
                f"{name}{path}: some files lie in folders of classes, others beside them; put all into such"
            )
        yield path, named


def label_in_name(path: str) -> str:
    """The label that the name of a file begins with, before the first underscore; empty if there is none."""
    label, mark, rest = os.path.basename(path).partition("_")
    return label if mark and rest[:1] not in ("", ".") else ""


def unclassified(folder: Path, name: str, suffixes: Collection[str]) -> Iterator[tuple[str, str]]:
    """The same where nobody asks for a class, so that files may lie anywhere: it is empty."""
    path = None
    for path in files(folder, suffixes):
        yield path, ""
    if path is None:
        raise DataError(f"{name}: holds no files of this kind ({', '.join(sorted(suffixes))})")


def files(folder: Path, suffixes: Collection[str] | None = None) -> Iterator[str]:
    """The paths of all files below a folder, from there, in the order of their names; links are followed.

    Without suffixes, all but hidden ones.
    """
    yield from _files(folder, "", suffixes, frozenset())


def _files(
    folder: Path, inner: str, suffixes: Collection[str] | None, above: frozenset[str]
) -> Iterator[str]:
    try:
        here = os.path.realpath(folder)
        if here in above:
            raise DataError(f"{folder}: is a link to a folder that it lies in; remove it")
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as fault:
        raise DataError(f"{folder}: cannot be read ({fault.strerror})") from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _files(Path(entry.path), f"{inner}{entry.name}/", suffixes, above | {here})
        elif suffixes is None or os.path.splitext(entry.name)[1].lower() in suffixes:
            yield inner + entry.name
