"""Captions of pictures: COCO's JSON, and text files whose lines are `picture.jpg#0`, a tab and a caption.

Both name pictures that lie beside them: in the folder of the file, in one called images in it, or, as COCO
has it, in one beside that folder called as the file is (`annotations/captions_val2017.json`, `val2017/`).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.errors import DataError
from regard.files.lines import Refuse, refuse_at_once, resolve
from regard.files.row import Row
from regard.files.squad import whole_json

NAMES = re.compile(r"captions\.txt|.*\.(lemma)?token\.txt", re.IGNORECASE)
"""What text files of captions are called."""
NUMBERED = re.compile(r"^(.+?)(?:#\w+)?\t(.*)$")
"""A line of such a file."""
HEADED = re.compile(r"^\s*(image|image_name|file|filename)\s*[,|]\s*(caption|comment_number)", re.IGNORECASE)
COCO = re.compile(r'^\s*\{\s*"(info|images|annotations|licenses|type)"\s*:')
FOLDERS = ("", "images", "Images", "Flicker8k_Dataset", "flickr30k-images")

Record = tuple[int, dict[str, Any]]
"""A number, and the raw cells: image, captions, and objects if there are any."""


def is_coco(file: str, base: Path | None = None) -> bool:
    """Whether a file of JSON begins as COCO's do."""
    path = resolve(file, base)
    if path.suffix.lower() == ".gz":
        return COCO.match(whole_json(file, "utf-8", base)[:1000]) is not None
    with path.open("rb") as raw:
        return COCO.match(raw.read(1000).decode("utf-8", "replace")) is not None


def coco(
    file: str, *, encoding: str = "utf-8", base: Path | None = None, refuse: Refuse = refuse_at_once
) -> Iterator[Record]:
    """Yields every picture that a file of COCO lists, with its captions."""
    try:
        content = json.loads(whole_json(file, encoding, base))
        images, annotations = content["images"], content.get("annotations", [])
        listed = {one["id"]: one for one in images}
        names = {number: str(one["file_name"]) for number, one in listed.items()}
    except (ValueError, RecursionError) as fault:
        raise DataError(f"{file}: not valid JSON ({fault})") from None
    except (KeyError, TypeError, AttributeError):
        raise DataError(
            f'{file}: not captions as COCO has them: {{"images": [{{"id": 1, "file_name": "a.jpg"}}], '
            '"annotations": [{"image_id": 1, "caption": "…"}]}'
        ) from None
    captions: dict[Any, list[object]] = {number: [] for number in listed}
    for number, one in enumerate(annotations, 1):
        if not isinstance(one, Mapping) or one.get("image_id") not in captions:
            of = one.get("image_id") if isinstance(one, Mapping) else None
            refuse(DataError(f"{file}: annotation {number} is of image {of!r}, which the file does not list"))
        elif "caption" in one:
            captions[one["image_id"]].append(one["caption"])
    place = Placed(resolve(file, base).parent, Path(file.removesuffix(".gz")).stem.partition("_")[2])
    for number, (key, name) in enumerate(names.items(), 1):
        objects = listed[key].get("objects")
        cells = {"image": place(name), "captions": captions[key]}
        yield number, cells if objects is None else cells | {"objects": objects}


def numbered(
    file: str, text: Iterable[str], folder: Path, refuse: Refuse = refuse_at_once
) -> Iterator[Record]:
    """Yields the picture and the caption of every line."""
    place = Placed(folder)
    for number, line in enumerate(text, 1):
        if not line.strip() or (number == 1 and HEADED.match(line)):
            continue
        found = NUMBERED.match(line)
        name, caption = found.groups() if found else map(str.strip, line.partition(",")[::2])
        if not name.strip() or not caption.strip():
            refuse(
                DataError(f"{file}:{number}: give a picture, a tab and its caption: picture.jpg#0\tA dog.")
            )
            continue
        yield number, {"image": place(name.strip()), "captions": caption.strip().strip('"')}


class Placed:
    """Where pictures lie, which the first one tells."""

    def __init__(self, folder: Path, split: str = "") -> None:
        beside = [f"../{split}"] if split and split not in (".", "..") and "/" not in split else []
        self.folder, self.candidates = folder, (*FOLDERS, *beside)
        self.inner: str | None = None

    def __call__(self, name: str) -> str:
        if self.inner is None:
            held = (inner for inner in self.candidates if (self.folder / inner / name).is_file())
            self.inner = next(held, "")
        return str(Path(self.inner) / name)


def caption_file(folder: Path) -> str | None:
    """The name of the file of captions in a folder of pictures, if there is one."""
    return next((path.name for path in sorted(folder.iterdir()) if NAMES.fullmatch(path.name)), None)


def gathered(rows: Iterable[Row], by: str, role: str) -> Iterator[Row]:
    """Rows with the same cell `by` as one, with the lists of all of them, where the first of them stood."""
    first: dict[object, Row] = {}
    for row in rows:
        key = row.cells[by]
        key = key if isinstance(key, str | bytes) else json.dumps(key)
        if key not in first:
            first[key] = replace(row, cells={**row.cells, role: [*row.cells[role]]})
        else:
            first[key].cells[role].extend(row.cells[role])
    yield from first.values()
