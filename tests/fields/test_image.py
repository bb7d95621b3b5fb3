"""The field of pictures: what it learns, what it makes of a picture, what is drawn anew in every epoch."""

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow
from pydantic import ValidationError

from regard.errors import CheckpointError, DataError
from regard.fields.axis import Axis
from regard.fields.field import Coded
from regard.fields.image import Image, ImageSettings
from regard.files.picture import png
from regard.models import ViTConfig

ROWS, COLUMNS = 12, 20


def noise(n_channels: int = 3, rows: int = ROWS, columns: int = COLUMNS, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (rows, columns, n_channels), np.uint8)


def fitted(pictures: list[np.ndarray], **settings: Any) -> Image:
    field = Image.of(ImageSettings(**settings))
    return field.fit([field.parse(png(one), f"input {n}") for n, one in enumerate(pictures)])


def encoded(field: Image, pixels: np.ndarray) -> Coded:
    (coded,) = field.encode([field.parse(png(pixels), "input 1")])
    return coded


def test_size_channels_and_statistics_are_those_of_the_training_pictures() -> None:
    pictures = [noise(seed=seed) for seed in range(5)]
    field = fitted(pictures)
    assert field.shape == (ROWS, COLUMNS, 3)
    np.testing.assert_allclose(field.mean, np.mean(pictures, (0, 1, 2)), atol=1e-3)
    np.testing.assert_allclose(field.deviation, np.std(pictures, (0, 1, 2)), atol=1e-3)
    assert field.width == {
        "rows": ROWS,
        "columns": COLUMNS,
        "channels": 3,
        "mean": list(field.mean),
        "deviation": list(field.deviation),
    }
    assert np.array_equal(encoded(field, pictures[2]).arrays["pixels"], pictures[2])


def test_grey_stays_grey_and_one_colour_makes_all_colour() -> None:
    assert fitted([noise(1)]).shape == (ROWS, COLUMNS, 1)
    assert fitted([noise(1), noise(3)]).shape == (ROWS, COLUMNS, 3)
    assert fitted([noise(3)], channels=1).shape == (ROWS, COLUMNS, 1)


def test_one_colour_everywhere_divides_by_nothing() -> None:
    assert fitted([np.full((3, 5, 1), 40, np.uint8)]).deviation == (1.0,)


@pytest.mark.parametrize(
    ("sizes", "size"),
    [
        ([(50, 50)] * 3, (50, 50)),
        ([(30, 70)] * 3, (30, 70)),
        ([(300, 400)] * 3, (224, 224)),
        ([(40, 60), (60, 40), (50, 50)], (32, 32)),
        ([(100, 120), (200, 110), (3, 5)], (96, 96)),
        ([(5, 9), (7, 8)], (16, 16)),
        ([(1000, 2000), (900, 950)], (224, 224)),
    ],
)
def test_the_size_fits_the_usual_picture(sizes: list[tuple[int, int]], size: tuple[int, int]) -> None:
    assert fitted([noise(1, *each) for each in sizes]).shape[:2] == size


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    field = fitted([noise()], shift=2, flip=True)
    field.save(tmp_path)
    assert Image.of(ImageSettings(shift=2, flip=True)).load(tmp_path) == field
    content = json.loads((tmp_path / "image.json").read_text())
    for damage in ({"mean": [1.0]}, {"rows": 0}, {"rows": "many"}, {"deviation": [0.0] * 3}, {"mean": None}):
        (tmp_path / "image.json").write_text(json.dumps(content | damage))
        with pytest.raises(CheckpointError, match=r"image.json: "):
            Image().load(tmp_path)


def test_cells_are_paths_bytes_or_records_of_arrays(tmp_path: Path) -> None:
    field = fitted([noise()])
    (tmp_path / "a.png").write_bytes(png(noise()))
    from_file = field.clean("a.png", "data.csv:3", "image", tmp_path)
    assert from_file == str(tmp_path / "a.png")
    images = noise(1, 2 * ROWS)[..., 0].reshape(2, ROWS, COLUMNS)
    head = b"\0\0\x08\x03" + np.array(images.shape, ">u4").tobytes()
    (tmp_path / "images-ubyte").write_bytes(head + images.tobytes())
    record = field.clean(
        {"array": "images-ubyte", "name": "values", "index": 1}, "images-ubyte:2", "image", tmp_path
    )
    assert json.loads(json.dumps(record)) == record
    cells = [from_file, png(noise()), record]
    first, second, third = field.encode([field.parse(cell, "here") for cell in cells])
    assert np.array_equal(first.arrays["pixels"], noise())
    assert np.array_equal(second.arrays["pixels"], noise())
    assert np.array_equal(third.arrays["pixels"], images[1][..., None].repeat(3, -1))


def test_from_far_away_nothing_but_bytes_is_a_picture() -> None:
    for cell in ("/etc/passwd", {"array": "/etc/passwd", "name": "values", "index": 0}):
        with pytest.raises(DataError, match="input 1: image "):
            Image().clean(cell, "input 1", "image")
    assert Image().clean(b"x", "input 1", "image") == b"x"


def test_what_cannot_be_read_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no picture")
    field = fitted([noise()])
    with pytest.raises(DataError, match=r"train.csv:7: not a picture of a kind that is read .* but text"):
        field.encode([field.parse(str(tmp_path / "a.png"), "train.csv:7")])


def test_suggestions_are_measured(tmp_path: Path) -> None:
    paths = []
    for n, size in enumerate([(40, 60), (60, 40), (48, 48)]):
        paths.append(str(tmp_path / f"{n}.png"))
        Path(paths[-1]).write_bytes(png(noise(3, *size)))
    found = Image.suggest(paths)
    assert found.settings == {"size": [32, 32], "shift": 4, "flip": True}
    assert found.size == 64
    assert found.reasons["size"] == "pictures are 40 × 60 to 60 × 40 pixels"
    assert ImageSettings(**found.settings).size == (32, 32)


def test_suggestions_fit_the_patches_of_a_first_model(tmp_path: Path) -> None:
    for rows, columns in [(8, 8), (30, 31), (56, 56), (61, 57), (50, 190), (100, 100), (300, 500)]:
        path = tmp_path / "one.png"
        path.write_bytes(png(noise(3, rows, columns)))
        suggested = Image.suggest([str(path)])
        size = suggested.settings["size"]
        assert all(0 < side <= max(4, real) for side, real in zip(size, (rows, columns), strict=True))
        first = ViTConfig.model_validate(ViTConfig.first(suggested.size))
        width = {
            "rows": size[0],
            "columns": size[1],
            "channels": 3,
            "mean": [1.0] * 3,
            "deviation": [1.0] * 3,
        }
        first.build(width)
        n_rows, n_columns = first.grid(*size)
        assert 4 <= n_rows * n_columns <= 224


def test_damaged_pictures_are_left_to_check(tmp_path: Path) -> None:
    for name, content in (("a", b""), ("b", png(noise(3))), ("c", b"hello")):
        (tmp_path / name).write_bytes(content)
    cells = [str(tmp_path / name) for name in "abc"]
    assert Image.suggest(cells) == Image.suggest(cells[1:2])
    with pytest.raises(DataError, match="the file is empty"):
        Image.suggest(cells[:1])


@pytest.mark.parametrize("settings", [{"size": [0, 4]}, {"size": [4]}, {"size": [2000, 4]}, {"channels": 2}])
def test_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ImageSettings(**settings)


# what is random


def drawn(field: Image, pixels: np.ndarray, seed: int) -> np.ndarray:
    return np.asarray(field.draw({"pixels": pixels}, np.random.default_rng(seed))["pixels"])


def test_nothing_is_drawn_unless_asked_for() -> None:
    assert np.array_equal(drawn(fitted([noise()]), noise(), 1), noise())


def test_a_shifted_picture_is_a_window_of_the_mirrored_one() -> None:
    field = fitted([noise()], shift=3)
    padded = np.pad(noise(), ((3, 3), (3, 3), (0, 0)), "reflect")
    windows = {padded[y : y + ROWS, x : x + COLUMNS].tobytes(): (y, x) for y in range(7) for x in range(7)}
    places = [windows[drawn(field, noise(), seed).tobytes()] for seed in range(300)]
    assert set(places) == set(windows.values())


def test_half_of_the_pictures_are_mirrored() -> None:
    field = fitted([noise()], flip=True)
    found = [drawn(field, noise(), seed) for seed in range(200)]
    mirrored = sum(np.array_equal(one, noise()[:, ::-1]) for one in found)
    assert mirrored + sum(np.array_equal(one, noise()) for one in found) == 200
    assert 70 < mirrored < 130


def test_a_square_is_hidden_and_its_middle_may_be_anywhere() -> None:
    field = fitted([noise()], cutout=4)
    hidden = np.zeros((ROWS, COLUMNS))
    for seed in range(400):
        pixels = drawn(field, np.full((ROWS, COLUMNS, 3), 255, np.uint8), seed)
        changed = (pixels != 255).any(-1)
        assert (pixels[changed] == np.round(field.mean)).all()
        assert changed.sum() <= 16
        hidden += changed
    assert (hidden > 0).all()
    assert hidden[3:-3, 3:-3].min() > hidden[0, 0]


def test_colours_vary_around_what_they_were() -> None:
    field = fitted([noise()], colour=0.3)
    found = np.stack([drawn(field, noise() // 2 + 64, seed) for seed in range(100)]).astype(float)
    assert found.std(0).mean() > 3
    np.testing.assert_allclose(found.mean(0), noise() // 2 + 64, atol=20)


def test_what_is_drawn_depends_on_nothing_but_the_generator() -> None:
    field = fitted([noise()], shift=3, flip=True, colour=0.2, cutout=5)
    before = noise()
    assert np.array_equal(drawn(field, before, 7), drawn(field, before, 7))
    assert not np.array_equal(drawn(field, before, 7), drawn(field, before, 8))
    assert np.array_equal(before, noise())
    kept = drawn(field, before, 7)
    assert (kept.dtype, kept.shape) == (before.dtype, before.shape)


def test_two_pictures_are_mixed_by_their_shares() -> None:
    one, other = {"pixels": noise(seed=1)}, {"pixels": noise(seed=2)}
    field = fitted([noise()])
    mixed = field.mix(one, other, 0.25)["pixels"].astype(float)
    np.testing.assert_allclose(mixed, one["pixels"] * 0.25 + other["pixels"] * 0.75, atol=0.51)
    assert np.array_equal(field.mix(one, other, 1.0)["pixels"], one["pixels"])


# what is left out


def test_a_unit_without_content_has_the_mean_colour() -> None:
    field = fitted([noise()])
    grid = Axis("image", tuple("abcdefg"), "patch", frozenset({0}), (2, 3))
    batch = {"pixels": noise()[None]}
    left = field.without(batch, grid, [1, 5, 6], "remove")["pixels"]
    assert left.shape == (3, ROWS, COLUMNS, 3)
    for picture, (y, x) in zip(left, [(0, 0), (1, 1), (1, 2)], strict=True):
        expected = noise()
        columns = slice(round(20 * x / 3), round(20 * (x + 1) / 3))
        expected[6 * y : 6 * y + 6, columns] = np.round(field.mean)
        assert np.array_equal(picture, expected)
    assert np.array_equal(batch["pixels"][0], noise())


def test_the_axis_has_the_picture_as_the_model_sees_it() -> None:
    field = fitted([noise()], size=[8, 8])
    coded = encoded(field, noise())
    axis = field.axis([], coded)
    assert (axis.unit, axis.grid, len(axis)) == ("pixel", (8, 8), 64)
    assert axis.picture is not None
    assert np.array_equal(np.array(Pillow.open(BytesIO(axis.picture))), coded.arrays["pixels"])


def test_the_price_of_a_request_is_known_before_it_is_decoded() -> None:
    field = fitted([noise()], size=[30, 32])
    assert field.cost(b"anything") == field.most == field.size(encoded(field, noise()).arrays) == 60
    assert replace(field, shape=(0, 0, 0)).cost(b"anything") == 60
    assert Image().cost(b"anything") == 224 * 224 / 16


def test_every_field_reads_the_sample() -> None:
    for channels in (1, 3):
        field = fitted([noise(channels)])
        (coded,) = field.encode([field.parse(field.clean(field.sample, "input 1", "image"), "input 1")])
        assert coded.arrays["pixels"].shape == field.shape
