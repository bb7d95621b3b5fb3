"""Where rows of pictures come from: folders, tables with paths, arrays."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pictures import LABELS, png, write_folder
from regard.errors import DataError
from regard.fields.image import Image
from regard.files.fingerprint import fingerprints
from regard.files.read import read_rows
from regard.files.row import Row

COLUMNS = {"image": None, "label": None}
FIELDS: Any = {"image": Image()}


def read(*paths: str, base: Path, **columns: Any) -> list[Row]:
    return list(read_rows(paths, COLUMNS | columns, fields=FIELDS, base=base))


def pixels_of(row: Row) -> np.ndarray:
    field = Image().fit([Image().parse(row.cells["image"], row.where)])
    (coded,) = field.encode([field.parse(row.cells["image"], row.where)])
    return np.asarray(coded.arrays["pixels"])


def noise(n: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(n).integers(0, 256, (n, *shape), np.uint8)


def test_a_folder_for_each_class(tmp_path: Path) -> None:
    write_folder(tmp_path / "train", 11, seed=1)
    rows = read("train/", base=tmp_path)
    assert len(rows) == 11
    assert [row.cells["label"] for row in rows] == sorted(row.cells["label"] for row in rows)
    assert set(LABELS) == {row.cells["label"] for row in rows}
    for row in rows:
        label, name = row.file.split("/")[1:]
        assert row.where == row.file == f"train/{label}/{name}"
        assert row.cells == {"image": str(tmp_path / "train" / label / name), "label": label}
        assert json.loads(json.dumps(row.cells)) == row.cells
        assert pixels_of(row).shape == (12, 20, 3)
    (asked, *_) = read_rows(["train/"], {"image": None}, fields=FIELDS, base=tmp_path)
    assert asked.cells.keys() == {"image"}


def test_a_folder_is_no_data_of_texts(tmp_path: Path) -> None:
    write_folder(tmp_path / "train", 3, seed=1)
    with pytest.raises(DataError, match=r"train/: a folder holds files, .* the task needs text, label"):
        list(read_rows(["train/"], {"text": None, "label": None}, base=tmp_path))
    with pytest.raises(
        DataError, match="train: is a folder, not a file; if it is the data, end its name with /"
    ):
        read("train", base=tmp_path)
    with pytest.raises(DataError, match="trian/: no such file; did you mean train"):
        read("trian/", base=tmp_path)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_paths_start_from_the_table(tmp_path: Path, suffix: str) -> None:
    write_folder(tmp_path / "data" / "pictures", 5, seed=1)
    paths = sorted((tmp_path / "data" / "pictures").rglob("*.png"))
    names = [str(path.relative_to(tmp_path / "data")) for path in paths]
    records = [{"file": name, "label": path.parent.name} for name, path in zip(names, paths, strict=True)]
    text = "".join(json.dumps(one) + "\n" for one in records)
    if suffix == "csv":
        text = "file,label\n" + "".join(f"{one['file']},{one['label']}\n" for one in records)
    (tmp_path / "data" / f"train.{suffix}").write_text(text)
    rows = read(f"data/train.{suffix}", base=tmp_path)
    assert [row.cells["image"] for row in rows] == list(map(str, paths))
    assert [row.line for row in rows] == list(range(1 + (suffix == "csv"), len(rows) + 1 + (suffix == "csv")))


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def arrays(folder: Path, kind: str, images: np.ndarray, labels: np.ndarray) -> list[str]:
    """The names of files that hold these."""
    if kind == "npz":
        np.savez_compressed(folder / "train.npz", images=images, labels=labels)
        return ["train.npz"]
    if kind == "npy":
        np.save(folder / "images.npy", images)
        np.save(folder / "labels.npy", labels)
        return ["images.npy", "labels.npy"]
    pack = gzip.compress if kind.endswith(".gz") else bytes
    names = [f"train-{what}-{kind}" for what in ("images", "labels")]
    for name, array in zip(names, (images, labels), strict=True):
        (folder / name).write_bytes(pack(idx(array)))
    return names


@pytest.mark.parametrize("kind", ["npz", "npy", "idx3-ubyte", "idx3-ubyte.gz"])
@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (3, 5, 7)])
def test_arrays_of_pictures_and_labels(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    images, labels = noise(6, *shape), np.array([[2], [0], [1], [1], [9], [0]], np.uint8)
    rows = read(*arrays(tmp_path, kind, images, labels if kind == "npz" else labels[:, 0]), base=tmp_path)
    assert [row.cells["label"] for row in rows] == ["2", "0", "1", "1", "9", "0"]
    for row, image in zip(rows, images, strict=True):
        assert json.loads(json.dumps(row.cells)) == row.cells
        expected = image.transpose(1, 2, 0) if shape[0] == 3 else image.reshape(5, 7, -1)
        assert np.array_equal(pixels_of(row), expected)


def test_arrays_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    names = arrays(tmp_path, "idx3-ubyte", noise(6, 5, 7), np.zeros(5, np.uint8))
    with pytest.raises(DataError, match=r"different length \(train-images-idx3-ubyte has 6, .* has 5\)"):
        read(*names, base=tmp_path)
    names = arrays(tmp_path, "npy", noise(6, 5, 7), np.zeros(6, np.uint8))
    with pytest.raises(DataError, match=r"labels.npy: .* is no image; give image and label in this order"):
        read(*reversed(names), base=tmp_path)
    np.save(tmp_path / "images.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(DataError, match=r"images.npy: "):
        read(*names, base=tmp_path)


def test_the_fingerprint_is_that_of_the_pictures_too(tmp_path: Path) -> None:
    write_folder(tmp_path / "train", 5, seed=1)
    opened = []

    def leads_to(name: str) -> list[Path]:
        opened.append(name)
        return [Path(row.cells["image"]) for row in read(name, base=tmp_path)]

    def now() -> str:
        return fingerprints(["train/"], tmp_path, tmp_path / "memo.json", leads_to)["train/"]

    first = now()
    assert now() == first
    paths = sorted((tmp_path / "train").rglob("*.png"))
    content = paths[0].read_bytes()
    paths[0].write_bytes(png(np.zeros((3, 3), np.uint8)))
    changed = now()
    assert changed != first
    paths[0].write_bytes(content)
    assert now() == first
    paths[0].rename(paths[0].with_name("other.png"))
    assert now() not in (first, changed)
