"""What `regard check` finds in pictures, before anything is trained."""

import struct
import zlib
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from pictures import png
from regard.check.examine import Report, examine
from regard.check.finding import Finding
from regard.fields.alike import BANDS, DIFFERENCE, FLIPPED, earlier_twins, hash_of
from regard.fields.image import Image
from regard.files.row import Row
from regard.models.encoders import ViTConfig
from regard.recipe import Recipe

SIDE = 32


def scene(seed: int, side: int = SIDE) -> np.ndarray:
    """Some soft blobs: alike to nothing else, and the same in any size."""
    rng = np.random.default_rng(seed)
    small = Pillow.fromarray(rng.integers(0, 256, (6, 6, 3), np.uint8))
    return np.asarray(small.resize((side, side), Pillow.Resampling.BICUBIC))


def jpeg(pixels: np.ndarray, quality: int = 80) -> bytes:
    file = BytesIO()
    Pillow.fromarray(pixels).save(file, "JPEG", quality=quality)
    return file.getvalue()


def gif(n_frames: int) -> bytes:
    frames = [Pillow.fromarray(scene(100 + n)) for n in range(n_frames)]
    file = BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return file.getvalue()


def bomb() -> bytes:
    """A PNG that says it has a hundred megapixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 10_000, 10_000, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    )


def checked(tmp_path: Path, **splits: dict[str, bytes]) -> list[Finding]:
    """Findings about files whose names begin with the folder of their label; good ones are beside them."""
    rows: dict[str, list[Row]] = {}
    for at, split in enumerate(splits):
        good = {f"cat/good{n}.png": png(scene(1000 * (at + 1) + n)) for n in range(5)}
        rows[split] = []
        for name, content in (good | splits[split]).items():
            path = tmp_path / split / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            cells = {"image": str(path), "label": name.split("/")[0]}
            rows[split].append(Row(cells, f"{split}/{name}", 0))
    return Image().check("image", rows)


def test_good_pictures_have_no_findings(tmp_path: Path) -> None:
    assert checked(tmp_path, train={}, test={}) == []


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "the file is empty"),
        (jpeg(scene(1))[:-300], "the picture is damaged"),
        (b"hello\n" * 50, "not a picture of a kind that is read"),
        (bomb(), "more than 64,000,000 pixels"),
    ],
)
def test_what_cannot_be_read_is_an_error(tmp_path: Path, content: bytes, fault: str) -> None:
    (finding,) = checked(tmp_path, train={"cat/bad.png": content, "dog/bad.jpg": content})
    assert (finding.severity, finding.kind, finding.count) == ("error", "unreadable", 2)
    assert finding.message.startswith("train: 2 pictures that cannot be read; the first: train/cat/bad.png: ")
    assert fault in finding.message
    assert [place.where for place in finding.places] == ["train/cat/bad.png", "train/dog/bad.jpg"]


SAME = png(scene(1))
AGAIN = jpeg(scene(1))
SMALLER = png(np.asarray(Pillow.fromarray(scene(1)).resize((24, 24))))


@pytest.mark.parametrize(
    ("splits", "kind", "message", "excerpt"),
    [
        (
            {"train": {"cat/a.png": SAME, "cat/b.png": SAME}},
            "duplicates",
            "train: 1 picture the same as an earlier one",
            "like train/cat/a.png",
        ),
        (
            {"train": {"cat/a.png": SAME, "cat/b.jpg": AGAIN, "cat/c.png": SMALLER}},
            "near-duplicates",
            "train: 2 pictures nearly the same as an earlier one",
            "like train/cat/a.png",
        ),
        (
            {"train": {"cat/a.png": SAME, "dog/b.png": SAME}},
            "contradictions",
            "train: 1 picture the same as one with another label",
            "like train/cat/a.png",
        ),
        (
            {"train": {"cat/a.png": SAME, "dog/b.jpg": AGAIN}},
            "near-contradictions",
            "train: 1 picture nearly the same as one with another label",
            "like train/cat/a.png",
        ),
        (
            {"train": {"cat/a.png": SAME}, "test": {"cat/b.png": SAME}},
            "shared",
            "test: 1 picture (16.7%) the same as one of train, so that scores flatter the model",
            "like train/cat/a.png",
        ),
        (
            {"train": {"cat/a.png": SAME}, "valid": {}, "test": {"cat/b.jpg": AGAIN}},
            "near-shared",
            "test: 1 picture (16.7%) nearly the same as one of train, so that scores flatter the model",
            "like train/cat/a.png",
        ),
        (
            {"train": {"cat/a.png": png(scene(1, 7))}},
            "tiny",
            "train: 1 picture with a side of fewer than 8 pixels",
            "7 × 7",
        ),
        (
            {"train": {"cat/a.png": png(np.zeros((4000, 3001), np.uint8))}},
            "huge",
            "train: 1 picture of more than 12,000,000 pixels: slow to read",
            "4000 × 3001",
        ),
        (
            {"train": {"cat/a.png": AGAIN}},
            "misnamed",
            "train: 1 picture of another format than the name says",
            "JPEG",
        ),
        (
            {"train": {"cat/a.gif": gif(3)}},
            "animated",
            "train: 1 picture that move: the first frame is read",
            "32 × 32",
        ),
    ],
)
def test_what_is_found(
    tmp_path: Path, splits: dict[str, dict[str, bytes]], kind: str, message: str, excerpt: str
) -> None:
    (finding,) = checked(tmp_path, **splits)
    assert (finding.kind, finding.message, finding.places[0].excerpt) == (kind, message, excerpt)
    assert finding.severity == ("note" if kind in ("huge", "misnamed", "animated") else "warning")


def slow_twins(left_NYX: np.ndarray) -> dict[int, int]:
    """By comparing every two of them."""
    found: dict[int, int] = {}
    hashes = [int(one) for one in hash_of(left_NYX)]
    for first, second in combinations(range(len(left_NYX)), 2):
        is_near = (hashes[first] ^ hashes[second]).bit_count() <= FLIPPED
        difference = np.abs(left_NYX[first].astype(int) - left_NYX[second].astype(int)).mean()
        if is_near and difference <= DIFFERENCE and second not in found:
            found[second] = first
    return found


@pytest.mark.parametrize("seed", range(3))
def test_twins_are_those_that_comparing_all_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    originals = rng.integers(0, 256, (60, 8, 9)).astype(np.int64)
    copies = originals[rng.integers(0, 60, 120)] + rng.integers(-4, 5, (120, 8, 9))
    left_NYX = np.concatenate([originals, copies]).clip(0, 255).astype(np.uint8)
    found = earlier_twins(left_NYX)
    assert found == slow_twins(left_NYX)
    assert 40 < len(found) < 180
    assert FLIPPED < BANDS


def test_many_blank_pictures_are_found_without_comparing_all() -> None:
    found = earlier_twins(np.full((5000, 8, 9), 200, np.uint8))
    assert sorted(found) == [*range(1, 5000)]


# through `regard check`


def recipe(folder: Path, **encoder: Any) -> Recipe:
    model = {
        "kind": "classifier",
        "encoder": {"kind": "vit", "d_model": 12, "n_layers": 1, "d_ff": 8, **encoder},
    }
    task = {"kind": "classify"}
    data = {"train": [f"{folder}/train/"], "valid": [f"{folder}/valid/"]}
    settings = {"max_steps": 100, "warmup": 9, "batch_tokens": 256, "threads": 1}
    return Recipe.parse(
        {"task": task, "fields": {"image": {}}, "data": data, "model": model, "train": settings}
    )


def write(folder: Path, n: int, first: int) -> None:
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for at in range(n):
            (folder / label / f"{at}.png").write_bytes(png(scene(first + at + 500 * (label == "dog"))))


@pytest.fixture(name="report")
def _report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("regard.check.cost.BUDGET", 0.0)
    write(tmp_path / "train", 8, 0)
    write(tmp_path / "valid", 2, 100)

    def made(**encoder: Any) -> Report:
        return examine(recipe(tmp_path, **encoder))

    return made


def test_few_patches_are_a_warning(report: Any) -> None:
    assert report(patch=8).findings == ()
    (finding,) = report(patch=16).findings
    assert finding.severity == "warning"
    assert finding.message == (
        "pictures of 32 × 32 pixels are cut into 2 × 2 patches only, so that there is little to attend to; "
        "lower model.encoder.patch"
    )
    assert ViTConfig(patch=8).remarks({"rows": 32, "columns": 32}) == []


def test_a_damaged_picture_stops_nothing_else_from_being_found(report: Any, tmp_path: Path) -> None:
    (tmp_path / "train" / "dog" / "0.png").write_bytes(b"")
    (tmp_path / "valid" / "cat" / "0.png").write_bytes((tmp_path / "train" / "cat" / "3.png").read_bytes())
    found = report()
    assert not found.trainable
    assert {finding.kind for finding in found.findings} == {"unreadable", "shared"}
