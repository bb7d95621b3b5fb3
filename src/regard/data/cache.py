"""Encoded examples as named arrays, in memory or mapped from files: data may be larger than memory.

KEY/index.json     the type and shape of every array, checksums of their blocks; format_version
    NAME.values    one array of all examples, concatenated
    NAME.ends      the end of each example in it
    sizes          sizes by side, for bucketing batches
    places         the file and the line of each example
    held_out.jsonl rows held out for validation
    seal           the checksum of index.json

The first axis of an array may differ from example to example; its type and the rest of its shape may not. A
folder is written atomically, and its name is a hash of all it depends on, so that any run may use it. Damage
is detected on opening (in a large folder in a sample of blocks, unless all are requested); a damaged folder
is treated as absent.
"""

import json
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from regard import durable
from regard.errors import DataError
from regard.files.row import Row

FORMAT_VERSION = 5
CHUNK = 4096
"""Rows encoded together."""
REWRITTEN = 2**20
"""Integers widened at a time."""
BLOCK = 2**20
"""Bytes covered by one checksum."""
SAMPLED = 256
"""Blocks that are checked when a folder with more is opened."""
DRAWN = 7
"""Separates the random numbers of `draw` from those of layouts."""

Array = NDArray[Any]
Ints = NDArray[np.integer]
Arrays = Mapping[str, Array]
"""The cached arrays of an example, by name."""


class Encoder(Protocol):
    """The part of a task that makes examples from rows."""

    @property
    def layout(self) -> "type[Examples]": ...

    @property
    def draws(self) -> bool:
        """True if an example differs from epoch to epoch."""

    def encode(self, rows: Sequence[Row]) -> list[Any]: ...

    def unusable(self, example: Any) -> str | None:
        """The reason why an example cannot be trained on; None if it can."""

    def size(self, example: Any) -> tuple[int, ...]: ...

    def keep(self, example: Any) -> Arrays: ...

    def revive(self, row: Row, kept: Arrays) -> Any: ...

    def draw(self, example: Any, rng: np.random.Generator, others: "Examples") -> Any:
        """The example of one epoch."""


@dataclass(frozen=True)
class Jagged:
    """Arrays of different length, concatenated."""

    values: Array
    ends: Ints

    def __getitem__(self, i: int) -> Array:
        return self.values[self.ends[i - 1] if i else 0 : self.ends[i]]


class Examples(Sequence[Any]):
    """The training examples, revived from their arrays when they are requested."""

    def __init__(
        self, encoder: Any, arrays: Arrays, files: Sequence[str], left_out: Mapping[str, int] | None = None
    ) -> None:
        names = [name.removesuffix(".values") for name in arrays if name.endswith(".values")]
        self._encoder, self._files = encoder, files
        self.columns = {name: Jagged(arrays[f"{name}.values"], arrays[f"{name}.ends"]) for name in names}
        self._places = arrays["places"]
        self.sizes = arrays["sizes"]
        self.left_out = dict(left_out or {})
        """Reasons why rows were left out, with the number of rows of each."""
        self._undrawn: Examples | None = None
        """The cached examples, if those of an epoch are drawn from them."""
        self._epoch = 0, 0

    @classmethod
    def of(cls, encoder: Encoder, rows: Iterable[Row]) -> Self:
        """Encode rows in memory."""
        maker = _Maker(encoder)
        chunks = [arrays for chunk in _chunks(rows) if (arrays := maker.arrays(chunk))]
        nothing: dict[str, Array] = {"sizes": np.zeros((0, 1), int), "places": np.zeros((0, 2), int)}
        arrays = {part: np.concatenate([chunk[part] for chunk in chunks]) for part in (chunks or [{}])[0]}
        return cls(encoder, arrays or nothing, maker.files, maker.left_out)

    @classmethod
    def open(cls, encoder: Encoder, folder: Path, *, whole: bool = False) -> Self | None:
        """Map the arrays of a folder; None if it is missing, damaged or of another format.

        `whole` checks every block, however large the folder is.
        """
        try:
            text = (folder / "index.json").read_bytes()
            index = json.loads(text)
            if index["format_version"] != FORMAT_VERSION or (folder / "seal").read_text() != _sum(text):
                return None
            if _is_damaged(folder, index["sums"], whole=whole):
                return None
            arrays = {
                name: np.memmap(folder / Path(name).name, dtype, "r", shape=tuple(shape))
                for name, (dtype, *shape) in index["arrays"].items()
            }
            return cls(encoder, arrays, index["files"], index["left_out"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, i: Any) -> Any:
        example = self._encoder.revive(self.row(i), self.kept(i))
        if self._undrawn is None:
            return example
        return self._encoder.draw(example, np.random.default_rng((*self._epoch, i, DRAWN)), self._undrawn)

    def kept(self, i: int) -> Arrays:
        """The arrays of an example."""
        return {name: column[i] for name, column in self.columns.items()}

    def in_epoch(self, seed: int, epoch: int) -> Self:
        """The examples of an epoch: always the same, unless the task draws.

        Draws depend on the seed, the epoch and the example's number alone.
        """
        if not self._encoder.draws:
            return self
        drawn = copy(self)
        drawn._undrawn = self if self._undrawn is None else self._undrawn
        drawn._epoch = seed, epoch
        return drawn

    def refuse_unfit(self, name: str) -> None:
        """Raise DataError if nothing can be learnt from these; `name` is the data's name in errors."""

    def row(self, i: int) -> Row:
        """The row of an example: file and line; its cells are not kept."""
        file, line = self._places[i]
        return Row({}, self._files[file], int(line))


class _Maker:
    """Makes arrays from rows, chunk by chunk; ends of sequences and numbers of files run on."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.files: list[str] = []
        self.left_out: Counter[str] = Counter()
        self._ends: dict[str, int] = {}

    def arrays(self, rows: Sequence[Row]) -> dict[str, Array]:
        encoder = self.encoder
        usable = []
        for row, example in zip(rows, encoder.encode(rows), strict=True):
            if reason := encoder.unusable(example):
                self.left_out[reason] += 1
            else:
                usable.append((row, example))
        if not usable:
            return {}
        kept = [encoder.keep(example) for _, example in usable]
        arrays: dict[str, Array] = {
            "sizes": np.array([encoder.size(example) for _, example in usable], np.int32),
            "places": np.array([(self._file(row.file), row.line) for row, _ in usable], np.int32),
        }
        for name in kept[0]:
            column = [arrays[name] for arrays in kept]
            ends = np.cumsum([len(part) for part in column], dtype=np.int64) + self._ends.get(name, 0)
            self._ends[name] = int(ends[-1])
            arrays[f"{name}.values"] = _narrow(np.concatenate(column))
            arrays[f"{name}.ends"] = ends
        return arrays

    def _file(self, name: str) -> int:
        if not self.files or self.files[-1] != name:
            self.files.append(name)
        return len(self.files) - 1


def _narrow(values: Array) -> Array:
    """Large integers in the fewest bytes that hold them, at least two; other arrays unchanged."""
    if values.dtype.kind not in "iu" or values.itemsize <= 2 or values.min(initial=0) < 0:
        return values
    needed = np.min_scalar_type(int(values.max(initial=0)))
    return values.astype(np.promote_types(np.uint16, needed))


def write(
    encoder: Encoder,
    rows: Iterable[Row],
    folder: Path,
    *,
    name: str,
    held_out: Sequence[Row] = (),
    tick: Callable[[int], None] = lambda done: None,
) -> None:
    """Encode rows into a folder; `held_out` may fill while they are read.

    `name` is the data's name in errors; `tick` is called with the number of rows of each chunk.
    """

    def fill(partial: Path) -> None:
        maker, shapes = _Maker(encoder), dict[str, list[Any]]()
        files: dict[str, BinaryIO] = {}
        try:
            for chunk in _chunks(rows):
                for part, array in maker.arrays(chunk).items():
                    if part not in files:
                        files[part] = (partial / part).open("wb")
                        shapes[part] = [array.dtype.str, 0, *array.shape[1:]]
                    wide = np.promote_types(shapes[part][0], array.dtype)
                    if wide.str != shapes[part][0]:
                        files[part].close()
                        _widen(partial / part, shapes[part][0], wide)
                        files[part] = (partial / part).open("ab")
                        shapes[part][0] = wide.str
                    files[part].write(array.astype(wide).tobytes())
                    shapes[part][1] += len(array)
                tick(len(chunk))
        finally:
            for file in files.values():
                file.close()
        if not shapes:
            raise DataError(f"{name}: no row can be trained on; see regard check")
        lines = "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in held_out)
        (partial / "held_out.jsonl").write_text(lines, "utf-8")
        index = {
            "format_version": FORMAT_VERSION,
            "left_out": maker.left_out,
            "files": maker.files,
            "arrays": shapes,
            "sums": {path.name: _sums(path) for path in sorted(partial.iterdir())},
        }
        text = json.dumps(index, ensure_ascii=False).encode()
        (partial / "index.json").write_bytes(text)
        (partial / "seal").write_text(_sum(text))

    durable.write_folder(folder, fill)


def _widen(path: Path, narrow: str, wide: np.dtype[Any]) -> None:
    """Rewrite a file of numbers with more bytes for each."""
    wider = path.with_name(f"{path.name}.wider")
    with path.open("rb") as old, wider.open("wb") as new:
        while len(values := np.fromfile(old, narrow, REWRITTEN)):
            new.write(values.astype(wide).tobytes())
    wider.replace(path)


def _sum(block: bytes) -> str:
    return f"{zlib.crc32(block):08x}"


def _sums(path: Path) -> list[str]:
    """The checksum of every block of a file."""
    with path.open("rb") as file:
        return [_sum(block) for block in iter(lambda: file.read(BLOCK), b"")]


def _is_damaged(folder: Path, sums: Mapping[str, Sequence[str]], *, whole: bool) -> bool:
    """True if a file has another length, or a checked block another checksum, than when it was written."""
    for name, blocks in sums.items():
        if -(-(folder / Path(name).name).stat().st_size // BLOCK) != len(blocks):
            return True
    places = [(name, number) for name, blocks in sums.items() for number in range(len(blocks))]
    if not whole and len(places) > SAMPLED:
        places = sorted(random.SystemRandom().sample(places, SAMPLED))
    for name, number in places:
        with (folder / Path(name).name).open("rb") as file:
            file.seek(number * BLOCK)
            if _sum(file.read(BLOCK)) != sums[name][number]:
                return True
    return False


def held_out(folder: Path) -> list[Row]:
    """Read the rows that were held out."""
    with (folder / "held_out.jsonl").open(encoding="utf-8") as lines:
        return [Row(**json.loads(line)) for line in lines]


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    left = iter(rows)
    return iter(lambda: list(islice(left, CHUNK)), [])
