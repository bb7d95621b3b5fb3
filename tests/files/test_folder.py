import os
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.files.folder import classified, files, splits_of

SUFFIXES = {".png", ".jpg"}


def tree(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"")


def test_a_folder_names_the_class_of_all_that_lies_in_it(tmp_path: Path) -> None:
    tree(tmp_path, "dog/2.jpg", "cat/in/b.PNG", "cat/a.png", "cat/notes.txt", ".trash/x.png", "cat/.x.png")
    assert list(classified(tmp_path, "pets/", SUFFIXES)) == [
        ("cat/a.png", "cat"),
        ("cat/in/b.PNG", "cat"),
        ("dog/2.jpg", "dog"),
    ]


def test_links_are_followed_once(tmp_path: Path) -> None:
    tree(tmp_path, "all/1.png", "pets/cat/2.png")
    os.symlink(tmp_path / "all", tmp_path / "pets" / "dog")
    assert [label for _, label in classified(tmp_path / "pets", "pets/", SUFFIXES)] == ["cat", "dog"]
    os.symlink(tmp_path / "pets", tmp_path / "pets" / "cat" / "again")
    with pytest.raises(DataError, match="is a link to a folder that it lies in"):
        list(files(tmp_path / "pets", SUFFIXES))


def test_splits_are_known_by_their_names_if_there_are_two(tmp_path: Path) -> None:
    tree(tmp_path, "Train/cat/1.png", "val/cat/2.png", "other/3.png")
    assert splits_of(tmp_path) == {"train": "Train", "valid": "val"}
    tree(tmp_path / "toys", "train/1.png", "car/2.png")
    assert splits_of(tmp_path / "toys") == {}
    assert [label for _, label in classified(tmp_path / "toys", "toys/", SUFFIXES)] == ["car", "train"]


def test_what_is_no_folder_of_classes_is_refused(tmp_path: Path) -> None:
    tree(tmp_path / "split", "train/cat/1.png", "test/cat/2.png")
    with pytest.raises(
        DataError, match=r'^pets/: holds splits.*: train = \["pets/train/"\], test = \["pets/test/"\]'
    ):
        list(classified(tmp_path / "split", "pets/", SUFFIXES))
    tree(tmp_path / "flat", "1.png")
    with pytest.raises(DataError, match=r"^pets/1.png: lies in no folder of a class"):
        list(classified(tmp_path / "flat", "pets/", SUFFIXES))
    tree(tmp_path / "none", "cat/1.txt")
    with pytest.raises(DataError, match=r"^pets/: holds no files of this kind \(.jpg, .png\)"):
        list(classified(tmp_path / "none", "pets/", SUFFIXES))
