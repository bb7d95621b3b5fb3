"""A picture: a cell is the path of a file, its bytes, or a record of an array, made pixels of one size."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Setting

from regard import durable
from regard.check.finding import Finding
from regard.check.rows import Splits
from regard.errors import CheckpointError, DataError
from regard.fields.axis import Axis
from regard.fields.examined_pictures import examined
from regard.fields.field import Arrays, Coded, FieldSettings, Occlusion, Suggestion, Width
from regard.fields.media import Media
from regard.files import picture
from regard.files.arrays import record
from regard.files.picture import Picture, Pixels, png

Side = Annotated[int, Setting(ge=1, le=1024)]
PIXELS_A_UNIT = 16
"""What counts as one unit of a batch: 4 × 4 pixels."""
LOOKED_AT = 2048
"""Pictures that size and statistics are learnt from at most, evenly spaced over all of them."""
LARGEST = 224
"""The side that pictures of different sizes are brought to at most, unless the recipe says more."""
STEP = 16
"""Such sides are multiples of it, so that patches of any usual size fit."""

SMALL, SMALL_STEP = 56, 4
"""A first recipe brings sides to a multiple of it, if none is longer than this; else to one of STEP."""


class ImageSettings(FieldSettings):
    """Pictures: what they are brought to, and how they are changed while learning."""

    kind: Literal["image"] = "image"
    size: tuple[Side, Side] | None = Setting(
        None, description="rows and columns that pictures are brought to; without it the data decide"
    )
    channels: Literal[1, 3] | None = Setting(
        None, description="1: grey, 3: colour; without it the data decide"
    )
    resize: Literal["crop", "stretch"] = Setting(
        "crop", description="how: the middle of a picture, or all of it stretched"
    )
    shift: int = Setting(
        0,
        ge=0,
        le=512,
        description="pixels that training pictures are moved by at most, mirrored at the border",
    )
    flip: bool = Setting(False, description="mirror half of the training pictures, left to right")
    colour: float = Setting(
        0.0, ge=0, le=1, description="how far brightness, contrast and saturation of training pictures vary"
    )
    mixup: float = Setting(
        0.0,
        ge=0,
        le=10,
        description="above 0 training pictures are mixed by twos: α of the Beta distribution",
    )
    cutout: int = Setting(
        0, ge=0, le=1024, description="side of a square that is hidden in training pictures, in pixels"
    )


class Source(NamedTuple):
    """A picture yet to be opened: many of them are held while a field is fitted."""

    cell: Any
    where: str


@dataclass(frozen=True)
class Image(Media):
    """Field and input at once: nothing is joined, nothing is cut."""

    kind: ClassVar[str] = "image"
    settings: ClassVar[type[FieldSettings]] = ImageSettings
    reads: ClassVar[str] = "pixels"
    widget: ClassVar[str] = "image"
    accepts: ClassVar[str] = "image/*"
    example: ClassVar[str] = "picture.png"
    suffixes: ClassVar[frozenset[str]] = picture.SUFFIXES
    config: ImageSettings = field(default_factory=ImageSettings)
    shape: tuple[int, int, int] = (0, 0, 0)
    """Rows, columns, channels."""
    mean: tuple[float, ...] = ()
    """By channel, of training pictures, from 0 to 255."""
    deviation: tuple[float, ...] = ()
    optional: bool = False
    name: str = "image"

    @classmethod
    def suggest(cls, cells: Sequence[Any]) -> Suggestion:
        heads = _heads(_spaced(cells))
        size = _size(heads)
        step = STEP if max(size) > SMALL else SMALL_STEP
        n_rows, n_columns = (max(step, side // step * step) for side in size)
        is_colour = any(head.n_channels == 3 for head in heads)
        sides = sorted((head.height, head.width) for head in heads)
        smallest, largest = ("{} × {}".format(*side) for side in (sides[0], sides[-1]))
        span = smallest if smallest == largest else f"{smallest} to {largest}"
        return Suggestion(
            {"size": [n_rows, n_columns], "shift": min(n_rows, n_columns) // 8, "flip": is_colour},
            _units(n_rows, n_columns),
            {
                "size": f"pictures are {span} pixels",
                "flip": "mirrored pictures are as good; false for letters and digits",
            },
        )

    @classmethod
    def of(cls, settings: ImageSettings) -> Self:
        return cls(settings)

    @property
    def sample(self) -> bytes:
        return png(np.full((STEP, STEP, 3), 127, np.uint8))

    @property
    def width(self) -> Width:
        n_rows, n_columns, n_channels = self.shape
        return {
            "rows": n_rows,
            "columns": n_columns,
            "channels": n_channels,
            "mean": list(self.mean),
            "deviation": list(self.deviation),
        }

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Any:
        if isinstance(cell, dict) and folder is not None and cell.keys() == {"array", "name", "index"}:
            return cell | {"array": str(folder / str(cell["array"]))}
        return super().clean(cell, where, name, folder)

    def parse(self, cell: Any, where: str) -> Source:
        return Source(cell, where)

    def fit(self, values: Iterable[Source]) -> Self:
        sources = _spaced(list(values))
        heads = [_open(source).head for source in sources]
        n_channels = self.config.channels or max(head.n_channels for head in heads)
        fitted = replace(self, shape=(*(self.config.size or _size(heads)), n_channels))
        sums_C = squares_C = np.zeros(n_channels)
        for source in sources:
            pixels_YXC = fitted._pixels(source).astype(np.float64)
            sums_C, squares_C = sums_C + pixels_YXC.mean((0, 1)), squares_C + (pixels_YXC**2).mean((0, 1))
        mean_C = sums_C / len(sources)
        deviation_C = np.sqrt((squares_C / len(sources) - mean_C**2).clip(1))
        return replace(
            fitted, mean=tuple(mean_C.round(4).tolist()), deviation=tuple(deviation_C.round(4).tolist())
        )

    def check(self, role: str, splits: Splits) -> list[Finding]:
        return examined(role, splits, _opened)

    def encode(self, values: Sequence[Source]) -> list[Coded]:
        return [Coded({"pixels": self._pixels(value)}) for value in values]

    def _pixels(self, source: Source) -> Pixels:
        return _open(source).fitted(*self.shape, stretch=self.config.resize == "stretch")

    def region(self, value: Source, box: Sequence[float]) -> tuple[float, float, float, float]:
        """Where a box of a picture's own pixels (left, top, width, height) ends up: left, top, right and
        bottom as shares of the sides.
        """
        head = _open(value).head
        stretch, (n_rows, n_columns, _) = self.config.resize == "stretch", self.shape
        whole = (0.0, 0.0, float(head.width), float(head.height))
        left, top, right, bottom = (
            whole if stretch else picture.middle(head.width, head.height, n_columns / n_rows)
        )
        x, y, width, height = box
        return (
            (x - left) / (right - left),
            (y - top) / (bottom - top),
            (x + width - left) / (right - left),
            (y + height - top) / (bottom - top),
        )

    def save(self, folder: Path) -> None:
        (folder / "image.json").write_text(json.dumps({"format_version": 1, **self.width}, indent=1) + "\n")

    def load(self, folder: Path) -> Self:
        path = folder / "image.json"
        try:
            saved = durable.read_json(path)
            shape = int(saved["rows"]), int(saved["columns"]), int(saved["channels"])
            mean, deviation = (tuple(map(float, saved[name])) for name in ("mean", "deviation"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}: the size of pictures cannot be read ({error})") from error
        if not (shape[2] == len(mean) == len(deviation) and min(*shape, *deviation) > 0):
            raise CheckpointError(f"{path}: a size, a mean and a deviation that do not belong together")
        return replace(self, shape=shape, mean=mean, deviation=deviation)

    def cost(self, cell: Any) -> int:
        n_rows, n_columns, _ = self.shape
        return _units(n_rows, n_columns) if n_rows else _units(*(self.config.size or (LARGEST, LARGEST)))

    def alone(self, limit: int) -> Self:
        return self

    @property
    def most(self) -> int:
        return _units(*self.shape[:2])

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        (part,) = parts
        return part

    def is_empty(self, arrays: Arrays) -> bool:
        return False

    def size(self, arrays: Arrays) -> int:
        return self.most

    @property
    def draws(self) -> bool:
        config = self.config
        return bool(config.shift or config.flip or config.colour or config.cutout or config.mixup)

    @property
    def mixup(self) -> float:
        return self.config.mixup

    def draw(self, arrays: Arrays, rng: np.random.Generator) -> Arrays:
        """A training picture as it is this time: moved, mirrored, in other colours, with a hidden part."""
        config, pixels_YXC = self.config, arrays["pixels"]
        if config.shift or config.flip:
            n_rows, n_columns, _ = self.shape
            rows, columns = _moved(n_rows, config.shift, rng), _moved(n_columns, config.shift, rng)
            columns = columns[::-1] if config.flip and rng.random() < 0.5 else columns
            pixels_YXC = pixels_YXC[rows[:, None], columns]
        if config.colour:
            pixels_YXC = _coloured(pixels_YXC, config.colour, rng)
        if config.cutout:
            pixels_YXC = np.array(pixels_YXC)
            y, x = (
                int(rng.integers(-config.cutout // 2, side - config.cutout // 2)) for side in self.shape[:2]
            )
            hidden = pixels_YXC[max(0, y) : y + config.cutout, max(0, x) : x + config.cutout]
            hidden[:] = self._blank
        return {**arrays, "pixels": pixels_YXC}

    def mix(self, arrays: Arrays, others: Arrays, share: float) -> Arrays:
        """Two pictures in one (mixup, Zhang et al. 2018): this share of the first."""
        mixed_YXC = share * arrays["pixels"] + (1 - share) * others["pixels"]
        return {**arrays, "pixels": mixed_YXC.round().astype(np.uint8)}

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        return {"pixels": np.stack([arrays["pixels"] for arrays in many])}

    def without(self, batch: Arrays, axis: Axis, units: Sequence[int], how: Occlusion) -> Arrays:
        """Whichever way: what is left out of a picture has the mean colour."""
        assert axis.grid is not None
        pixels_BYXC = np.repeat(batch["pixels"], len(units), 0)
        bounds = [
            np.linspace(0, side, n + 1).round().astype(int)
            for side, n in zip(self.shape, axis.grid, strict=False)
        ]
        for pixels_YXC, unit in zip(pixels_BYXC, units, strict=True):
            row, column = divmod(axis.free.index(unit), axis.grid[1])
            y, x = (slice(*ends[n : n + 2]) for ends, n in zip(bounds, (row, column), strict=True))
            pixels_YXC[y, x] = self._blank
        return {**batch, "pixels": pixels_BYXC}

    @property
    def _blank(self) -> NDArray[np.uint8]:
        return np.array(self.mean).round().astype(np.uint8)

    def axis(self, values: Sequence[Any], coded: Coded) -> Axis:
        """The pixels; models say what they make of them."""
        n_rows, n_columns, _ = self.shape
        labels = tuple(f"{y + 1},{x + 1}" for y in range(n_rows) for x in range(n_columns))
        pixels = np.asarray(coded.arrays["pixels"])
        return Axis(self.name, labels, "pixel", grid=(n_rows, n_columns), picture=png(pixels))


def _open(source: Source) -> Picture:
    return _opened(*source)[0]


def _heads(cells: Sequence[Any]) -> list[picture.Head]:
    """The heads of those that can be read; of the others `regard check` speaks."""
    heads, fault = [], None
    for cell in cells:
        try:
            heads.append(_open(Source(cell, str(cell))).head)
        except DataError as damage:
            fault = fault or damage
    if not heads and fault is not None:
        raise fault
    return heads


def _opened(cell: Any, where: str) -> tuple[Picture, bytes]:
    """The picture, and the bytes that it is made of."""
    if isinstance(cell, dict):
        array = record(cell)
        return Picture.of(array, where), array.tobytes()
    content = Image.content(Image(), cell, where)
    return Picture(content, where), content


def _spaced(items: Sequence[Any]) -> Sequence[Any]:
    return items[:: -(-len(items) // LOOKED_AT)]


def _size(heads: Sequence[picture.Head]) -> tuple[int, int]:
    """The size of all pictures, if they have one and it is not large; else a square of the usual side."""
    sizes = {(head.height, head.width) for head in heads}
    if len(sizes) == 1 and max(max(sizes)) <= LARGEST:
        return sizes.pop()
    usual = int(np.median([min(head.height, head.width) for head in heads]))
    side = max(STEP, min(LARGEST, usual // STEP * STEP))
    return side, side


def _units(n_rows: int, n_columns: int) -> int:
    return -(-n_rows * n_columns // PIXELS_A_UNIT)


def _moved(side: int, shift: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The rows, or columns, of a picture that has been moved a little; beyond a border they are mirrored."""
    places = np.abs(np.arange(side) + rng.integers(-shift, shift, endpoint=True))
    mirrored: NDArray[np.int64] = np.minimum(places, 2 * (side - 1) - places) % side
    return mirrored


def _coloured(pixels_YXC: Pixels, most: float, rng: np.random.Generator) -> Pixels:
    brightness, contrast, saturation = 1 + most * rng.uniform(-1, 1, 3)
    x_YXC = pixels_YXC * np.float32(brightness)
    x_YXC = x_YXC.mean() + contrast * (x_YXC - x_YXC.mean())
    grey_YX1 = x_YXC.mean(-1, keepdims=True)
    coloured: Pixels = (grey_YX1 + saturation * (x_YXC - grey_YX1)).clip(0, 255).astype(np.uint8)
    return coloured
