"""Which files are for training, for validation and for testing: words in their names say it."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from regard.errors import DataError
from regard.files.folder import SPLITS, splits_of
from regard.files.folder import files as files_below
from regard.files.formats import file_format
from regard.files.lines import expand, resolve
from regard.files.read import reader

MOST_TEXTS = 1_000
"""Files of a folder that are listed in a recipe."""
TEXT = re.compile(r"[^/]+\.(txt|text|md)(\.gz)?", re.IGNORECASE)
PURPOSE = {"train": "training", "valid": "validation", "test": "testing"}


def splits(
    paths: Sequence[str], given: Mapping[str, Sequence[str]] | None = None
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Files by split, with the reasons; without any word of a split all of them are for training.

    `given` are those of which the user says the split.
    """
    said = {file: split for split, named in (given or {}).items() for path in named for file in _inside(path)}
    if not paths and not said:
        raise DataError("no files are given; try: regard init train.tsv, or regard init train.en train.de")
    files = [*dict.fromkeys([*(file for path in paths for file in _inside(path)), *said])]
    for file in files:
        if file_format(file) == "spreadsheet":
            reader(file)
        for one in expand(file):
            if file_format(one) != "folder":
                resolve(one)
    if len({file_format(file) == "text" for file in files}) > 1:
        raise DataError(f"plain text and files of records are mixed in {', '.join(files)}; give one kind")
    groups: dict[str, list[str]] = {split: [] for split in SPLITS}
    unnamed: list[str] = []
    for file in files:
        split = said.get(file) or _split(file)
        (groups[split] if split else unnamed).append(file)
    if not groups["train"]:
        groups["train"], unnamed = unnamed, []
    filled = [split for split, group in groups.items() if group]
    is_lone = filled != ["train"] and len(filled) == 1 and not said
    if is_lone:
        groups["train"], groups[filled[0]] = groups[filled[0]], []
    if unnamed:
        raise DataError(f"{unnamed[0]}: train, valid or test? Put one of these words into the file's name")
    if not groups["train"]:
        raise DataError(f"no training file among {', '.join(files)}; name one like train.tsv")
    reasons = [
        f"{', '.join(group)}: for {PURPOSE[split]}, {'as given' if group[0] in said else 'by name'}."
        for split, group in groups.items()
        if group
    ]
    if is_lone:
        reasons[0] = f"{', '.join(groups['train'])}: for training, as there are no other files."
    elif not said and not any(SPLITS["train"] & set(_words(file)) for file in files):
        reasons[0] = f"{', '.join(groups['train'])}: for training, as no name says anything else."
    if file_format(files[0]) == "text":
        groups = {split: _like_training(groups["train"], group) for split, group in groups.items()}
    return {split: tuple(group) for split, group in groups.items()}, reasons


def _inside(path: str) -> list[str]:
    """A file, or a folder: as one, as a folder for each split, or as the text files that are all it holds."""
    if not Path(path).is_dir():
        return [path]
    whole = f"{path.rstrip('/')}/"
    names = list(islice(files_below(Path(path)), MOST_TEXTS + 1))
    if names and len(names) <= MOST_TEXTS and all(TEXT.fullmatch(name) for name in names):
        return [f"{whole}{name}" for name in names]
    return [f"{whole}{name}/" for name in splits_of(Path(path)).values()] or [whole]


def _split(file: str) -> str | None:
    return next((split for split, words in SPLITS.items() if words & set(_words(file))), None)


def _words(file: str) -> list[str]:
    return re.findall(r"[a-z]+", Path(file).name.lower())


def _like_training(train: list[str], group: list[str]) -> list[str]:
    """Parallel files in the order of the training files, told apart by the words only one of those has."""
    if group and len(group) != len(train):
        raise DataError(
            f"{', '.join(group)}: {len(group)} files, but training has {len(train)}; give one set"
        )
    words = [set(_words(file)) for file in train]
    marks = [own - set().union(*(other for other in words if other is not own)) for own in words]
    found = [[file for file in group if mark and mark <= set(_words(file))] for mark in marks]
    return [file for [file] in found] if all(len(match) == 1 for match in found) else group
