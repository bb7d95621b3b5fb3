"""Files of pictures → pixels, and back to PNG; needs Pillow, which comes with `regard[image]`.

Pictures are hostile: what they are and how large is read from the head of the file and bounded before
anything is decoded. Of an animation the first frame is read, a photograph is turned upright (EXIF), what is
transparent stands before white, and 16 bits a channel become 8.
"""

import warnings
from collections.abc import Callable
from functools import cache, cached_property
from io import BytesIO
from types import ModuleType
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.errors import DataError

Pixels = NDArray[np.uint8]
"""Rows × columns × channels: grey, or red, green and blue."""
SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"}
)
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
"""The decoders that are used; Pillow has others, some of which run programs."""
MOST_PIXELS = 64_000_000
GREY = frozenset({"1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F"})
SIDEWAYS = frozenset({5, 6, 7, 8})
"""Orientations of EXIF that swap rows and columns."""
ORIENTATION = 0x0112
T = TypeVar("T")


class Head(NamedTuple):
    """Facts about a picture that its file states before it is decoded."""

    format: str
    height: int
    width: int
    n_channels: int
    is_animated: bool


class Picture:
    """A picture whose file has been opened, not yet decoded; `where` is what errors call it."""

    def __init__(self, content: bytes, where: str) -> None:
        self.where = where
        if not content:
            raise DataError(f"{where}: the file is empty; get the picture again, or leave it out")
        pil = _pillow().Image
        try:
            with warnings.catch_warnings(action="error", category=pil.DecompressionBombWarning):
                self._image = pil.open(BytesIO(content), formats=FORMATS)
        except (pil.DecompressionBombError, pil.DecompressionBombWarning):
            raise DataError(f"{where}: {_too_large()}") from None
        except pil.UnidentifiedImageError:
            raise DataError(f"{where}: {_unknown(content)}") from None
        except Exception as fault:  # a damaged head makes decoders raise anything
            raise DataError(f"{where}: {_damaged(fault)}") from None
        if self._image.width * self._image.height > MOST_PIXELS:
            raise DataError(f"{where}: {_too_large()}")

    @classmethod
    def of(cls, array: NDArray[Any], where: str) -> Self:
        """A picture from numbers: rows × columns, perhaps with channels first or last."""
        picture = cls.__new__(cls)
        picture.where, picture._image = where, _pillow().Image.fromarray(_as_bytes(array, where))
        return picture

    @property
    def head(self) -> Head:
        image = self._image
        height, width = image.height, image.width
        if self._orientation in SIDEWAYS:
            height, width = width, height
        is_grey = image.mode in GREY or (image.mode == "P" and _is_grey(image.getpalette("RGB") or []))
        is_animated = self._guarded(lambda: bool(getattr(image, "is_animated", False)))
        return Head(image.format or "array", height, width, 1 if is_grey else 3, is_animated)

    def pixels(self, n_channels: int) -> Pixels:
        """The whole picture."""
        return self._guarded(lambda: _array(self._converted(n_channels)))

    def fitted(self, height: int, width: int, n_channels: int, *, stretch: bool) -> Pixels:
        """The picture in another size: stretched to it, or its middle, as much of it as has this shape."""

        def decoded() -> Pixels:
            sides = (2 * height, 2 * width) if self._orientation in SIDEWAYS else (2 * width, 2 * height)
            self._image.draft(None, sides)  # a JPEG of more than four times the size is decoded smaller
            image = self._converted(n_channels)
            if image.size != (width, height):
                box = None if stretch else middle(image.width, image.height, width / height)
                image = image.resize((width, height), _pillow().Image.Resampling.BILINEAR, box)
            return _array(image)

        return self._guarded(decoded)

    @cached_property
    def _orientation(self) -> int:
        return self._guarded(lambda: int(self._image.getexif().get(ORIENTATION, 1)))

    def _converted(self, n_channels: int) -> Any:
        """Decodes, turns upright, and converts to grey or to colour."""
        pil, image = _pillow().Image, self._image
        if self._orientation != 1:
            image = _pillow().ImageOps.exif_transpose(image)
        if image.mode == "F":
            raise DataError("the picture holds fractions; save it with 8 or 16 bits a channel")
        if image.mode.startswith("I"):
            values_YX = np.asarray(image)
            if values_YX.min() < 0 or values_YX.max() > 0xFFFF:
                raise DataError("the picture has more than 16 bits a channel; save it with 8 or 16")
            image = pil.fromarray((values_YX >> 8).astype(np.uint8))
        if image.has_transparency_data:
            image = pil.alpha_composite(pil.new("RGBA", image.size, "white"), image.convert("RGBA"))
        return image.convert("L" if n_channels == 1 else "RGB")

    def _guarded(self, decode: Callable[[], T]) -> T:
        """The result of `decode`; DataError for whatever a damaged file makes it raise."""
        try:
            return decode()
        except DataError as fault:
            raise DataError(f"{self.where}: {fault}") from None
        except Exception as fault:
            raise DataError(f"{self.where}: {_damaged(fault)}") from None


def png(pixels: Pixels) -> bytes:
    """Pixels as a PNG."""
    image = _pillow().Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def gif(frames_TYX: NDArray[np.uint8]) -> bytes:
    """Grey pixels as a film."""
    first, *others = [_pillow().Image.fromarray(pixels_YX) for pixels_YX in frames_TYX]
    file = BytesIO()
    first.save(file, "GIF", save_all=True, append_images=others, duration=100)
    return file.getvalue()


@cache
def _pillow() -> ModuleType:
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError:
        raise DataError("pictures need Pillow; install it with: pip install 'regard[image]'") from None
    return PIL


def _as_bytes(array: NDArray[Any], where: str) -> Pixels:
    """Rows × columns, or × 3 channels: integers up to 255 or 65,535, fractions up to 1."""
    if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3):
        array = array.transpose(1, 2, 0)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3) or not array.size:
        raise DataError(f"{where}: an array of {array.shape} is no picture of rows × columns (× 3 channels)")
    if array.shape[0] * array.shape[1] > MOST_PIXELS:
        raise DataError(f"{where}: {_too_large()}")
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    is_whole = array.dtype.kind in "iub"
    most = 255 if array.dtype == bool or not is_whole else 1
    low, high = float(array.min()), float(array.max())
    if not (low >= 0 and high <= (0xFFFF if is_whole else 1)):  # also false for NaN
        raise DataError(
            f"{where}: the picture holds numbers from {low:g} to {high:g}; give whole ones from 0 to 255 or "
            "65,535, or fractions from 0 to 1"
        )
    scaled = array * most if high <= 255 else array / 257
    return np.ascontiguousarray(scaled.round() if scaled.dtype.kind == "f" else scaled, np.uint8)


def _array(image: Any) -> Pixels:
    pixels: Pixels = np.array(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def middle(width: int, height: int, shape: float) -> tuple[float, float, float, float]:
    """The largest box in the middle that has this shape, columns to rows: left, top, right, bottom."""
    inner_width, inner_height = min(width, height * shape), min(height, width / shape)
    left, top = (width - inner_width) / 2, (height - inner_height) / 2
    return left, top, left + inner_width, top + inner_height


def _is_grey(palette: list[int]) -> bool:
    colours = np.array(palette).reshape(-1, 3)
    return bool((colours == colours[:, :1]).all())


def _too_large() -> str:
    return f"the picture has more than {MOST_PIXELS:,} pixels; make it smaller"


def _unknown(content: bytes) -> str:
    try:
        content[:1000].decode()
        what = "text, whatever its name says"
    except UnicodeDecodeError:
        what = "a damaged head, or no picture"
    return f"not a picture of a kind that is read ({', '.join(FORMATS)}), but {what}"


def _damaged(fault: Exception) -> str:
    message = " ".join(str(fault).split())[:100]
    return f"the picture is damaged ({message or type(fault).__name__}); get it again, or leave it out"
