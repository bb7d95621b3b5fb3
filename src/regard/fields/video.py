"""A clip: a cell is the path of a film or of a folder of frames, made so many frames of one size.

A cell may be {"path": …, "start": …, "end": …}: a part of a film, in seconds, as columns start and end say.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Setting

from regard import durable
from regard.check.finding import Finding, about
from regard.check.rows import Splits
from regard.errors import CheckpointError, DataError
from regard.fields.axis import Axis
from regard.fields.field import Arrays, Coded, FieldSettings, Occlusion, Suggestion, Width, unreadable
from regard.fields.image import Side
from regard.fields.media import Media
from regard.files import film
from regard.files.picture import gif, png

PIXELS_A_UNIT = 128
"""What counts as one unit of a batch: a tubelet of 2 × 8 × 8 pixels."""
LOOKED_AT = 256
"""Clips that size and statistics are learnt from at most."""
LARGEST, STEP = 112, 16


class VideoSettings(FieldSettings):
    """Clips: how many frames are read, what they are brought to, and how they change while learning."""

    kind: Literal["video"] = "video"
    frames: int = Setting(16, ge=1, le=256, description="frames that are read, evenly spaced in time")
    kept: int | None = Setting(
        None,
        ge=1,
        le=1024,
        description="frames that are cached; of more than `frames`, training draws one from each stretch",
    )
    size: tuple[Side, Side] | None = Setting(
        None, description="rows and columns that frames are brought to; without it the data decide"
    )
    resize: Literal["crop", "stretch"] = Setting(
        "crop", description="how: the middle of a frame, or all of it stretched"
    )
    shift: int = Setting(
        0, ge=0, le=512, description="pixels that training clips are moved by at most, around the border"
    )

    @property
    def n_kept(self) -> int:
        return max(self.frames, self.kept or 0)


class Source(NamedTuple):
    """A clip yet to be opened."""

    file: bytes | Path
    where: str
    start: float = 0.0
    end: float | None = None


@dataclass(frozen=True)
class Video(Media):
    """Field and input at once: nothing is joined, nothing is cut."""

    kind: ClassVar[str] = "video"
    synonyms: ClassVar[tuple[str, ...]] = ("video", "clip", "film", "file", "filename", "path", "视频")
    settings: ClassVar[type[FieldSettings]] = VideoSettings
    reads: ClassVar[str] = "clips"
    accepts: ClassVar[str] = "video/*"
    example: ClassVar[str] = "clip.mp4"
    suffixes: ClassVar[frozenset[str]] = film.SUFFIXES
    config: VideoSettings = field(default_factory=VideoSettings)
    shape: tuple[int, int, int] = (0, 0, 3)
    """Rows, columns, channels."""
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    optional: bool = False
    name: str = "video"

    @classmethod
    def suggest(cls, cells: Sequence[Any]) -> Suggestion:
        sources = [cls().parse(cell, str(cell)) for cell in cells[:: -(-len(cells) // 32)]]
        clips = [film.measure(*source) for source in sources]
        n_rows, n_columns = _size(clips)
        usual = int(np.median([len(clip.seconds) for clip in clips]))
        frames = min(16, max(2, 1 << max(0, usual.bit_length() - 1)))
        units = -(-frames * n_rows * n_columns // PIXELS_A_UNIT)
        return Suggestion(
            {"frames": frames, "size": [n_rows, n_columns]},
            units,
            {"frames": f"clips have {usual} frames as a rule"},
        )

    @classmethod
    def of(cls, settings: VideoSettings) -> Self:
        return cls(settings)

    @property
    def sample(self) -> bytes:
        return gif(np.stack([np.full((STEP, STEP), grey, np.uint8) for grey in (120, 130)]))

    @property
    def width(self) -> Width:
        n_rows, n_columns, n_channels = self.shape
        return {
            "frames": self.config.frames,
            "rows": n_rows,
            "columns": n_columns,
            "channels": n_channels,
            "mean": list(self.mean),
            "deviation": list(self.deviation),
        }

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Any:
        if isinstance(cell, Mapping) and folder is not None and "path" in cell:
            return {"path": super().clean(cell["path"], where, name, folder), **_part(cell, where, name)}
        return super().clean(cell, where, name, folder)

    def gathered(self, cell: object, record: Mapping[str, object]) -> object:
        """The part of a film that columns start and end say."""
        part = {key: record[key] for key in ("start", "end") if record.get(key) not in (None, "")}
        return {"path": cell, **part} if part and isinstance(cell, str) else cell

    def parse(self, cell: Any, where: str) -> Source:
        part = cell if isinstance(cell, Mapping) else {"path": cell}
        path = part["path"]
        if isinstance(path, bytes):
            return Source(self.content(path, where), where)
        if not Path(path).is_dir():
            self.content(path, where)
        return Source(Path(path), where, part.get("start", 0.0), part.get("end"))

    def fit(self, values: Iterable[Source]) -> Self:
        every = list(values)
        sources = every[:: -(-len(every) // LOOKED_AT)]
        size = self.config.size or _size([film.measure(*source) for source in sources])
        fitted = replace(self, shape=(*size, 3))
        sums_C, squares_C = np.zeros(3), np.zeros(3)
        for source in sources:
            frames_TYXC = fitted._frames(source, 2).astype(np.float64)
            sums_C = sums_C + frames_TYXC.mean((0, 1, 2))
            squares_C = squares_C + (frames_TYXC**2).mean((0, 1, 2))
        mean_C = sums_C / len(sources)
        deviation_C = np.sqrt((squares_C / len(sources) - mean_C**2).clip(1))
        return replace(
            fitted, mean=tuple(mean_C.round(4).tolist()), deviation=tuple(deviation_C.round(4).tolist())
        )

    def check(self, role: str, splits: Splits) -> list[Finding]:
        """Clips that cannot be read, and those that are too short: frames are counted, not decoded."""
        found = unreadable(self, role, splits)
        for split, rows in splits.items():
            short, faults = [], []
            for row in rows:
                try:
                    clip = film.measure(*self.parse(row.cells[role], row.where))
                except DataError as fault:
                    faults.append((row, str(fault)))
                    continue
                if len(clip.seconds) < self.config.frames:
                    short.append(row)
            if faults and not found:
                first = f"{len(faults):,} clips that cannot be read; the first: {faults[0][1]}"
                found += about("error", "unreadable", split, [row for row, _ in faults], first)
            remark = f"with fewer than {self.config.frames} frames, of which some are then repeated"
            found += about("warning", "short-clip", split, short, remark)
        return found

    def encode(self, values: Sequence[Source]) -> list[Coded]:
        return [Coded({"frames": self._frames(value, self.config.n_kept)}) for value in values]

    def _frames(self, source: Source, n: int) -> NDArray[np.uint8]:
        stretch = self.config.resize == "stretch"
        file, where, start, end = source
        return film.decoded(file, where, n, self.shape, stretch=stretch, start=start, end=end)

    def save(self, folder: Path) -> None:
        (folder / "video.json").write_text(json.dumps({"format_version": 1, **self.width}, indent=1) + "\n")

    def load(self, folder: Path) -> Self:
        path = folder / "video.json"
        try:
            saved = durable.read_json(path)
            shape = int(saved["rows"]), int(saved["columns"]), int(saved["channels"])
            mean, deviation = (tuple(map(float, saved[name])) for name in ("mean", "deviation"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}: the size of frames cannot be read ({error})") from error
        if not (shape[2] == len(mean) == len(deviation) == 3 and min(*shape, *deviation) > 0):
            raise CheckpointError(f"{path}: a size, a mean and a deviation that do not belong together")
        return replace(self, shape=shape, mean=mean, deviation=deviation)

    def cost(self, cell: Any) -> int:
        n_rows, n_columns = self.shape[:2] if self.shape[0] else self.config.size or (LARGEST, LARGEST)
        return -(-self.config.frames * n_rows * n_columns // PIXELS_A_UNIT)

    def alone(self, limit: int) -> Self:
        return self

    @property
    def most(self) -> int:
        return self.cost(None)

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        (part,) = parts
        return part

    def is_empty(self, arrays: Arrays) -> bool:
        return False

    def size(self, arrays: Arrays) -> int:
        return self.most

    @property
    def draws(self) -> bool:
        return bool(self.config.shift) or self.config.n_kept > self.config.frames

    @property
    def mixup(self) -> float:
        return 0.0

    def draw(self, arrays: Arrays, rng: np.random.Generator) -> Arrays:
        """A training clip as it is this time: other frames of each stretch, and all moved alike."""
        frames_TYXC = np.asarray(arrays["frames"])
        bounds = np.linspace(0, len(frames_TYXC), self.config.frames + 1).round().astype(int)
        places = rng.integers(bounds[:-1], np.maximum(bounds[1:], bounds[:-1] + 1))
        shift = self.config.shift
        moved = rng.integers(-shift, shift, 2, endpoint=True)
        return {**arrays, "frames": np.roll(frames_TYXC[places], tuple(moved), axis=(1, 2))}

    def mix(self, arrays: Arrays, others: Arrays, share: float) -> Arrays:
        raise NotImplementedError("clips are not mixed")

    def read(self, arrays: Arrays) -> NDArray[np.uint8]:
        """The frames that are read, of all that are cached: the middle one of each stretch."""
        frames_TYXC = np.asarray(arrays["frames"])
        if len(frames_TYXC) == self.config.frames:
            return frames_TYXC
        middles = (np.arange(self.config.frames) + 0.5) / self.config.frames * len(frames_TYXC)
        chosen_TYXC: NDArray[np.uint8] = frames_TYXC[middles.astype(int)]
        return chosen_TYXC

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        return {"frames": np.stack([self.read(arrays) for arrays in many])}

    def without(self, batch: Arrays, axis: Axis, units: Sequence[int], how: Occlusion) -> Arrays:
        """Whichever way: what is left out of a clip has the mean colour. The axis is that of the strip."""
        assert axis.grid is not None
        frames_BTYXC = np.repeat(batch["frames"], len(units), 0)
        n_frames, n_rows, n_columns = frames_BTYXC.shape[1:4]
        strip_BYTXC = frames_BTYXC.transpose(0, 2, 1, 3, 4).reshape(
            len(units), n_rows, n_frames * n_columns, -1
        )
        tall, wide = n_rows // axis.grid[0], _wide(axis, n_rows, n_columns)
        across = n_columns // wide
        deep = n_frames // (axis.grid[1] // across)
        for strip_YTXC, unit in zip(strip_BYTXC, units, strict=True):
            row, column = divmod(axis.free.index(unit), axis.grid[1])
            time, x = divmod(column, across)
            for frame in range(time * deep, (time + 1) * deep):
                left = frame * n_columns + x * wide
                strip_YTXC[row * tall : (row + 1) * tall, left : left + wide] = self._blank
        back = strip_BYTXC.reshape(len(units), n_rows, n_frames, n_columns, -1).transpose(0, 2, 1, 3, 4)
        return {**batch, "frames": np.ascontiguousarray(back)}

    @property
    def _blank(self) -> NDArray[np.uint8]:
        return np.array(self.mean).round().astype(np.uint8)

    def axis(self, values: Sequence[Any], coded: Coded) -> Axis:
        """The pixels of the clip as a strip: its frames beside one another."""
        frames_TYXC = self.read(coded.arrays)
        n_frames, n_rows, n_columns, n_channels = frames_TYXC.shape
        strip = frames_TYXC.transpose(1, 0, 2, 3).reshape(n_rows, n_frames * n_columns, n_channels)
        labels = tuple(f"{y + 1},{x + 1}" for y in range(n_rows) for x in range(n_frames * n_columns))
        return Axis(self.name, labels, "pixel", grid=(n_rows, n_frames * n_columns), picture=png(strip))


def _wide(axis: Axis, n_rows: int, n_columns: int) -> int:
    """Columns of a unit, which is square."""
    assert axis.grid is not None
    return min(n_columns, n_rows // axis.grid[0])


def _part(cell: Mapping[str, Any], where: str, name: str) -> dict[str, float]:
    try:
        part = {key: float(cell[key]) for key in ("start", "end") if cell.get(key) is not None}
    except (TypeError, ValueError):
        raise DataError(f"{where}: start and end of the {name} must be numbers, in seconds") from None
    start, end = part.get("start", 0.0), part.get("end", float("inf"))
    if not (isfinite(start) and 0 <= start < end):
        raise DataError(f"{where}: the {name} begins at {start:g} s and ends at {end:g} s; mend start or end")
    return part


def _size(clips: Sequence[film.Clip]) -> tuple[int, int]:
    """The size of all frames, if they have one and it is not large; else a square of the usual side."""
    sizes = {(clip.height, clip.width) for clip in clips}
    if len(sizes) == 1 and max(max(sizes)) <= LARGEST:
        return sizes.pop()
    usual = int(np.median([min(clip.height, clip.width) for clip in clips]))
    side = max(STEP, min(LARGEST, usual // STEP * STEP))
    return side, side
