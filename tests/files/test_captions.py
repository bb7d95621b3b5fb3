"""Files of captions: COCO's JSON, Flickr's text files, tables; several captions of a picture are one row."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pictures import noise
from regard.errors import DataError
from regard.files.row import Row
from regard.tasks import CaptionConfig, task_rows

ROLES: dict[str, Any] = {"image": None, "captions": None, "objects": None}


def rows(path: Path, name: str, **columns: Any) -> list[Row]:
    return list(task_rows(CaptionConfig(), [name], ROLES | columns, base=path))


def pictures(folder: Path, n: int = 3) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(noise(n)):
        (folder / f"{number}.png").write_bytes(content)


def coco(path: Path, **changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "info": {},
        "images": [
            {"id": 7, "file_name": "0.png", "objects": [{"class": "dog", "box": [0, 0, 5, 6]}]},
            {"id": 9, "file_name": "1.png"},
        ],
        "annotations": [
            {"id": 1, "image_id": 9, "caption": "one bird"},
            {"id": 2, "image_id": 7, "caption": " a dog\n"},
            {"id": 3, "image_id": 7, "caption": "the dog"},
        ],
    } | changes
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return content


@pytest.mark.parametrize("place", ["", "images", "../val"])
def test_coco(tmp_path: Path, place: str) -> None:
    pictures(tmp_path / "annotations" / place)
    coco(tmp_path / "annotations" / "captions_val.json")
    first, second = rows(tmp_path, "annotations/captions_val.json")
    assert Path(first.cells["image"]).resolve() == (tmp_path / "annotations" / place / "0.png").resolve()
    assert first.cells["captions"] == ["a dog", "the dog"]
    assert first.cells["objects"] == [{"name": "dog", "box": [0, 0, 5, 6]}]
    assert second.cells.keys() == {"image", "captions"}


def test_coco_may_be_compressed_and_asked_without_captions(tmp_path: Path) -> None:
    pictures(tmp_path)
    coco(tmp_path / "captions.json")
    (tmp_path / "c.json.gz").write_bytes(gzip.compress((tmp_path / "captions.json").read_bytes()))
    found = task_rows(CaptionConfig(), ["c.json.gz"], {"image": None}, base=tmp_path)
    assert [Path(row.cells["image"]).name for row in found] == ["0.png", "1.png"]


@pytest.mark.parametrize("inner", ["", "Images"])
@pytest.mark.parametrize(
    "text",
    [
        "0.png#0\ta dog\n0.png#1\tthe dog\n1.png#0\tone, bird\n",
        "image,caption\n0.png,a dog\n0.png,the dog\n1.png,one, bird\n",
    ],
)
def test_captions_in_a_text_file_or_its_folder(tmp_path: Path, inner: str, text: str) -> None:
    pictures(tmp_path / "flickr" / inner)
    (tmp_path / "flickr" / "captions.txt").write_text(text)
    for name in ("flickr/", "flickr/captions.txt"):
        found = rows(tmp_path, name)
        assert [row.cells["captions"] for row in found] == [["a dog", "the dog"], ["one, bird"]]
        assert all(Path(row.cells["image"]).is_file() for row in found)


def test_rows_of_a_table_about_one_picture_are_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("path,caption\na.png,a dog\nb.png,one bird\na.png,the dog\n")
    first, second = rows(tmp_path, "t.csv", image="path", captions="caption")
    assert (first.cells["captions"], first.line) == (["a dog", "the dog"], 2)
    assert second.cells["captions"] == ["one bird"]
    (tmp_path / "t.jsonl").write_text(
        '{"file": "a.png", "captions": ["a dog", {"raw": "the dog"}], "objects": []}\n'
        '{"file": "b.png", "captions": "one bird"}\n'
    )
    first, second = rows(tmp_path, "t.jsonl")
    assert (first.cells["captions"], second.cells["captions"]) == (["a dog", "the dog"], ["one bird"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"annotations": [{"image_id": 8, "caption": "a"}]}, r"annotation 1 is of image 8, which the file"),
        (
            {"annotations": [{"image_id": 7, "caption": 3.5}]},
            r"number 1 of its captions is a number; it must",
        ),
        ({"images": 3}, r"not captions as COCO has them"),
        ({"images": [{"id": 7}]}, r"not captions as COCO has them"),
        (
            {"images": [{"id": 7, "file_name": "0.png", "objects": [{"class": "dog"}]}]},
            r'its objects: number 1 must be \{"name"',
        ),
        (
            {"images": [{"id": 7, "file_name": "0.png", "objects": [{"name": "a", "box": [0, 0, 0, 3]}]}]},
            r"the box 0, 0, 0 × 3 holds no pixels",
        ),
    ],
)
def test_what_is_wrong_with_coco_is_said(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    keep = {} if "annotations" in changes else {"annotations": []}
    coco(tmp_path / "c.json", **changes, **keep)
    with pytest.raises(DataError, match=message):
        rows(tmp_path, "c.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.png#0\t \n", r"captions.txt:1: give a picture, a tab"),
        ("\n0.png\n", r"captions.txt:2: give a pic"),
    ],
)
def test_what_is_wrong_with_lines_is_said(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "captions.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        rows(tmp_path, "captions.txt")
