"""Pictures of every kind become the bytes they should, and hostile files one sentence."""

import struct
import zlib
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from regard.errors import DataError
from regard.files import picture
from regard.files.picture import Picture, png

ROWS, COLUMNS = 13, 19


def saved(image: Image.Image, kind: str = "PNG", **settings: Any) -> bytes:
    file = BytesIO()
    image.save(file, kind, **settings)
    return file.getvalue()


def noise(n_channels: int = 3, rows: int = ROWS, columns: int = COLUMNS) -> np.ndarray:
    return np.random.default_rng(rows).integers(0, 256, (rows, columns, n_channels), np.uint8)


def opened(content: bytes) -> Picture:
    return Picture(content, "cat.png")


def test_colour_and_grey_come_out_as_they_went_in() -> None:
    for n_channels in (1, 3):
        pixels = noise(n_channels)
        one = opened(png(pixels))
        assert one.head == ("PNG", ROWS, COLUMNS, n_channels, False)
        assert np.array_equal(one.pixels(n_channels), pixels)
    luma = np.array(Image.fromarray(noise()).convert("L"))[..., None]
    assert np.array_equal(opened(png(noise())).pixels(1), luma)
    assert np.array_equal(opened(png(noise(1))).pixels(3), noise(1).repeat(3, -1))


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "GIF"])
def test_kinds_that_lose_nothing(kind: str) -> None:
    grey = Image.fromarray(noise(1)[..., 0])
    assert np.array_equal(opened(saved(grey, kind)).pixels(1), noise(1))


def test_a_palette_counts_by_its_colours() -> None:
    colours = Image.fromarray(noise() // 64 * 64).quantize(64)
    one = opened(saved(colours))
    assert one.head.n_channels == 3
    assert np.array_equal(one.pixels(3), np.array(colours.convert("RGB")))
    grey = Image.fromarray(noise(1)[..., 0]).convert("P")
    assert opened(saved(grey)).head.n_channels == 1


def test_cmyk_is_converted() -> None:
    image = Image.fromarray(noise()).convert("CMYK")
    assert np.array_equal(opened(saved(image, "TIFF")).pixels(3), np.array(image.convert("RGB")))


def test_what_is_transparent_stands_before_white() -> None:
    colours, alpha = noise(), noise(1) // 128 * 255
    image = Image.fromarray(np.concatenate([colours, alpha], -1))
    assert np.array_equal(opened(saved(image)).pixels(3), np.where(alpha > 0, colours, 255))
    palette = Image.fromarray(noise(1)[..., 0]).convert("P")
    pixels = opened(saved(palette, transparency=7)).pixels(1)
    hidden = np.array(palette)[..., None] == 7
    assert hidden.any()
    assert (pixels[hidden] == 255).all()


def test_sixteen_bits_become_eight() -> None:
    values = np.random.default_rng(0).integers(0, 65536, (ROWS, COLUMNS), np.uint16)
    for kind in ("PNG", "TIFF"):
        assert np.array_equal(opened(saved(Image.fromarray(values), kind)).pixels(1)[..., 0], values >> 8)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_is_turned_upright(orientation: int) -> None:
    image = Image.fromarray(noise())
    exif = Image.Exif()
    exif[0x0112] = orientation
    one = opened(saved(image, exif=exif))
    tagged = Image.open(BytesIO(saved(image, exif=exif)))
    upright = np.array(ImageOps.exif_transpose(tagged))
    assert (one.head.height, one.head.width) == upright.shape[:2]
    assert np.array_equal(one.pixels(3), upright)


def test_of_an_animation_the_first_frame_is_read() -> None:
    frames = [Image.fromarray(np.full((5, 7), grey, np.uint8)) for grey in (30, 200, 90)]
    one = opened(saved(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert one.head.is_animated
    assert np.array_equal(one.pixels(1), np.full((5, 7, 1), 30))


def test_the_middle_of_a_picture_or_all_of_it_stretched() -> None:
    halves = np.zeros((10, 30, 1), np.uint8)
    halves[:, 10:20] = 255
    assert (opened(png(halves)).fitted(5, 5, 1, stretch=False) > 200).all()
    stretched = opened(png(halves)).fitted(5, 6, 1, stretch=True)[2, :, 0]
    assert stretched[0] == stretched[-1] == 0
    assert (stretched[2:4] > 200).all()
    same = noise()
    assert np.array_equal(opened(png(same)).fitted(ROWS, COLUMNS, 3, stretch=False), same)
    image = Image.fromarray(same).resize((8, 8), Image.Resampling.BILINEAR, (3, 0, 16, 13))
    assert np.array_equal(opened(png(same)).fitted(8, 8, 3, stretch=False), np.array(image))


def test_a_large_jpeg_is_decoded_smaller_and_looks_the_same() -> None:
    y, x = np.mgrid[:512, :768]
    waves = (127 + 60 * np.sin(x / 40) + 60 * np.cos(y / 30)).astype(np.uint8)
    content = saved(Image.fromarray(waves), "JPEG", quality=95)
    small = opened(content).fitted(32, 48, 1, stretch=True)[..., 0].astype(int)
    exact = np.array(Image.open(BytesIO(content)).resize((48, 32), Image.Resampling.BILINEAR)).astype(int)
    assert np.abs(small - exact).mean() < 2


def jpeg() -> bytes:
    return saved(Image.fromarray(noise(3, 64, 64)), "JPEG")


def bomb(rows: int, columns: int) -> bytes:
    """A PNG that says it has so many pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    packed = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "the file is empty"),
        (b"hello\n" * 100, r"not a picture of a kind that is read \(JPEG, .*\), but text, whatever its name"),
        (b"\xff\x01\x02" * 50, "a damaged head, or no picture"),
        (b"\x89PNG\r\n\x1a\n", "damaged|no picture"),
        (jpeg()[:200], "damaged"),
        (jpeg()[:-500], r"the picture is damaged \(image file is truncated .*\); get it again"),
        (bomb(8000, 8001), "more than 64,000,000 pixels; make it smaller"),
        (bomb(10_000, 10_000), "more than 64,000,000 pixels"),
        (bomb(30_000, 30_000), "more than 64,000,000 pixels"),
        (bomb(1000, 1000), "damaged"),
        (saved(Image.fromarray(np.full((3, 3), 0.5, np.float32)), "TIFF"), "holds fractions"),
        (saved(Image.fromarray(np.full((3, 3), 70_000, np.int32)), "TIFF"), "more than 16 bits a channel"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(content: bytes, fault: str) -> None:
    with pytest.raises(DataError, match=rf"^cat.png: .*({fault})") as raised:
        opened(content).pixels(3)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250


def test_no_damage_makes_anything_but_a_sentence() -> None:
    rng = np.random.default_rng(0)
    kinds = [
        jpeg(),
        png(noise()),
        saved(Image.fromarray(noise()), "GIF"),
        saved(Image.fromarray(noise()), "TIFF"),
    ]
    kinds += [saved(Image.fromarray(noise()), kind) for kind in ("WEBP", "BMP")]
    refused = 0
    for n in range(300):
        content = bytearray(kinds[n % len(kinds)])
        for place in rng.integers(0, len(content), 1 + n % 9):
            content[place] = rng.integers(256)
        try:
            pixels = opened(bytes(content)).fitted(8, 8, 3, stretch=True)
        except DataError:
            refused += 1
        else:
            assert pixels.shape == (8, 8, 3)
    assert 30 < refused < 300


@pytest.mark.parametrize(
    ("array", "pixels"),
    [
        (noise(1)[..., 0], noise(1)),
        (noise(1), noise(1)),
        (noise(), noise()),
        (noise().transpose(2, 0, 1), noise()),
        (noise().astype(">i4"), noise()),
        (noise(1)[..., 0] / 255, noise(1)),
        (noise(1)[..., 0] > 127, (noise(1) > 127) * 255),
        (noise(1)[..., 0].astype(np.uint16) * 257, noise(1)),
    ],
)
def test_arrays_are_pictures_too(array: np.ndarray, pixels: np.ndarray) -> None:
    one = Picture.of(array, "x.npy:3")
    n_channels = pixels.shape[2]
    assert np.array_equal(one.pixels(n_channels), pixels)
    assert one.head == ("array", ROWS, COLUMNS, n_channels, False)


@pytest.mark.parametrize(
    ("array", "fault"),
    [
        (np.zeros(7), r"an array of \(7,\) is no picture"),
        (np.zeros((5, 4, 2)), "is no picture"),
        (np.zeros((0, 4)), "is no picture"),
        (np.full((4, 4), -1), "numbers from -1 to -1; give whole ones from 0 to 255"),
        (np.full((4, 4), 1.5), "numbers from 1.5 to 1.5"),
        (np.full((4, 4), np.nan), "numbers from nan to nan"),
        (np.full((4, 4), 70_000), "numbers from 70000 to 70000"),
    ],
)
def test_arrays_that_are_no_pictures(array: np.ndarray, fault: str) -> None:
    with pytest.raises(DataError, match=rf"^x.npy:3: .*{fault}"):
        Picture.of(array, "x.npy:3")


def test_pillow_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    picture._pillow.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(DataError, match=r"pip install 'regard\[image\]'"):
        opened(b"x")
    picture._pillow.cache_clear()
