"""Which files are for training, for validation and for testing: words in their names say it."""

import re
from collections.abc import Sequence
from pathlib import Path

from regard.errors import DataError
from regard.files.folder import SPLITS, splits_of
from regard.files.formats import file_format
from regard.files.lines import expand, resolve

PURPOSE = {"train": "training", "valid": "validation", "test": "testing"}


def splits(paths: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Files by split, with the reasons; without any word of a split all of them are for training."""
    if not paths:
        raise DataError("no files are given; try: regard init train.tsv, or regard init train.en train.de")
    files = [file for path in paths for file in _inside(path)]
    for file in files:
        for one in expand(file):
            if file_format(one) != "folder":
                resolve(one)
    if len({file_format(file) == "text" for file in files}) > 1:
        raise DataError(f"plain text and files of records are mixed in {', '.join(files)}; give one kind")
    groups: dict[str, list[str]] = {split: [] for split in SPLITS}
    unnamed: list[str] = []
    for file in files:
        split = _split(file)
        (groups[split] if split else unnamed).append(file)
    if not groups["train"]:
        groups["train"], unnamed = unnamed, []
    if unnamed:
        raise DataError(f"{unnamed[0]}: train, valid or test? Put one of these words into the file's name")
    if not groups["train"]:
        raise DataError(f"no training file among {', '.join(files)}; name one like train.tsv")
    reasons = [
        f"{', '.join(group)}: for {PURPOSE[split]}, by name." for split, group in groups.items() if group
    ]
    if not any(SPLITS["train"] & set(_words(file)) for file in files):
        reasons[0] = f"{', '.join(groups['train'])}: for training, as no name says anything else."
    if file_format(files[0]) == "text":
        groups = {split: _like_training(groups["train"], group) for split, group in groups.items()}
    return {split: tuple(group) for split, group in groups.items()}, reasons


def _inside(path: str) -> list[str]:
    """A file, or a folder: as one, or as a folder for each split."""
    if not Path(path).is_dir():
        return [path]
    whole = f"{path.rstrip('/')}/"
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
