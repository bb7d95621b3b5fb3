"""Encoded examples as integer arrays, in memory or mapped from files: data may be larger than memory.

KEY/index.json     how many examples, the shape of every array; format_version
    0.values       the sequences of the first column one after another, 1.values of the second
    0.ends         where each of them ends
    sizes          lengths by side, as batches are bucketed by
    places         the file and the line each came from
    held_out.jsonl rows kept back for validation

A folder is whole or absent, and its name says what it was made of: whoever finds it may use it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from regard import durable
from regard.errors import DataError
from regard.files.row import Row
from regard.text.tokenizer import Tokenizer

FORMAT_VERSION = 2
CHUNK = 4096
"""Rows encoded together."""
REWRITTEN = 2**20
"""Integers that are made wider together."""
ADDED = 8
"""Pieces that a task may add to its vocabulary at most."""

Ints = NDArray[np.integer]
Kept = tuple[Ints, ...]
"""What of an example is kept: one sequence of integers per column."""


class Encoder(Protocol):
    """The part of a task that makes examples of rows."""

    @property
    def layout(self) -> "type[Examples]": ...

    @property
    def tokenizers(self) -> dict[str, Tokenizer]: ...

    def encode(self, rows: Sequence[Row]) -> list[Any]: ...

    def usable(self, example: Any) -> bool: ...

    def size(self, example: Any) -> tuple[int, ...]: ...

    def keep(self, example: Any) -> Kept: ...

    def revive(self, row: Row, kept: Kept) -> Any: ...


@dataclass(frozen=True)
class Ragged:
    """Sequences of different length in one array."""

    values: Ints
    ends: Ints

    def __getitem__(self, i: int) -> Ints:
        return self.values[self.ends[i - 1] if i else 0 : self.ends[i]]


class Examples(Sequence[Any]):
    """What is trained on."""

    def __init__(
        self, encoder: Encoder, arrays: dict[str, Ints], files: Sequence[str], n_left_out: int = 0
    ) -> None:
        n_columns = sum(name.endswith(".values") for name in arrays)
        self._encoder, self._files = encoder, files
        self._columns = [Ragged(arrays[f"{n}.values"], arrays[f"{n}.ends"]) for n in range(n_columns)]
        self._places = arrays["places"]
        self.sizes = arrays["sizes"]
        self.n_left_out = n_left_out
        """Rows that cannot be trained on."""

    @classmethod
    def of(cls, encoder: Encoder, rows: Iterable[Row]) -> Self:
        """In memory."""
        made = _Maker(encoder)
        chunks = [arrays for chunk in _chunks(rows) if (arrays := made.arrays(chunk))]
        nothing: dict[str, Ints] = {"sizes": np.zeros((0, 1), int), "places": np.zeros((0, 2), int)}
        arrays = {part: np.concatenate([chunk[part] for chunk in chunks]) for part in (chunks or [{}])[0]}
        return cls(encoder, arrays or nothing, made.files, made.n_left_out)

    @classmethod
    def open(cls, encoder: Encoder, folder: Path) -> Self | None:
        """Mapped from a folder; None when there is none, or it is damaged or of another format."""
        try:
            index = json.loads((folder / "index.json").read_text("utf-8"))
            if index["format_version"] != FORMAT_VERSION:
                return None
            arrays: dict[str, Ints] = {}
            for name, (dtype, *shape) in index["arrays"].items():
                path, kind = folder / Path(name).name, np.dtype(dtype)
                if kind.kind not in "iu" or path.stat().st_size != kind.itemsize * int(np.prod(shape)):
                    return None
                arrays[name] = np.memmap(path, dtype, "r", shape=tuple(shape))
            return cls(encoder, arrays, index["files"], index["n_left_out"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, i: Any) -> Any:
        return self._encoder.revive(self.row(i), tuple(column[i] for column in self._columns))

    def in_epoch(self, seed: int, epoch: int) -> Self:
        """As they are in that epoch: here always the same."""
        return self

    def refuse_unfit(self, name: str) -> None:
        """DataError where nothing can be learnt from these; `name` is what errors call the data."""

    def row(self, i: int) -> Row:
        """Where it came from; its text is not kept."""
        file, line = self._places[i]
        return Row({}, self._files[file], int(line))


class _Maker:
    """Rows → arrays, chunk by chunk; the ends of sequences and the numbers of files run on.

    Integers have the bytes that the vocabulary needs, or more in a chunk that holds larger ones.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        small = all(len(tokenizer) <= 2**16 - ADDED for tokenizer in encoder.tokenizers.values())
        self.dtype = np.dtype(np.uint16 if small else np.uint32)
        self.files: list[str] = []
        self.n_left_out = 0
        self._ends: dict[int, int] = {}

    def arrays(self, rows: Sequence[Row]) -> dict[str, Ints]:
        encoder = self.encoder
        found = zip(rows, encoder.encode(rows), strict=True)
        usable = [(row, example) for row, example in found if encoder.usable(example)]
        self.n_left_out += len(rows) - len(usable)
        kept = [encoder.keep(example) for _, example in usable]
        arrays: dict[str, Ints] = {
            "sizes": np.array([encoder.size(example) for _, example in usable], np.int32),
            "places": np.array([(self._file(row.file), row.line) for row, _ in usable], np.int32),
        }
        for n, column in enumerate(zip(*kept, strict=True)):
            ends = np.cumsum([len(part) for part in column], dtype=np.int64) + self._ends.get(n, 0)
            self._ends[n] = int(ends[-1])
            values = np.concatenate(column)
            needed = np.min_scalar_type(int(values.max(initial=0)))
            arrays[f"{n}.values"] = values.astype(np.promote_types(self.dtype, needed))
            arrays[f"{n}.ends"] = ends
        return arrays if usable else {}

    def _file(self, name: str) -> int:
        if not self.files or self.files[-1] != name:
            self.files.append(name)
        return len(self.files) - 1


def write(
    encoder: Encoder,
    rows: Iterable[Row],
    folder: Path,
    *,
    name: str,
    kept_back: Sequence[Row] = (),
    tick: Callable[[int], None] = lambda done: None,
) -> None:
    """Encode rows into a folder; `kept_back` may fill while they are read.

    `name` is what errors call the data; `tick` hears how many rows each chunk had.
    """

    def fill(partial: Path) -> None:
        made, shapes = _Maker(encoder), dict[str, list[Any]]()
        files: dict[str, BinaryIO] = {}
        try:
            for chunk in _chunks(rows):
                for part, array in made.arrays(chunk).items():
                    if part not in files:
                        files[part] = (partial / part).open("wb")
                        shapes[part] = [array.dtype.str, 0, *array.shape[1:]]
                    if array.itemsize > np.dtype(shapes[part][0]).itemsize:
                        files[part].close()
                        _widen(partial / part, shapes[part][0], array.dtype)
                        files[part] = (partial / part).open("ab")
                        shapes[part][0] = array.dtype.str
                    files[part].write(array.astype(shapes[part][0]).tobytes())
                    shapes[part][1] += len(array)
                tick(len(chunk))
        finally:
            for file in files.values():
                file.close()
        if not shapes:
            raise DataError(f"{name}: no usable examples for train")
        held = "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in kept_back)
        (partial / "held_out.jsonl").write_text(held, "utf-8")
        index = {
            "format_version": FORMAT_VERSION,
            "n_left_out": made.n_left_out,
            "files": made.files,
            "arrays": shapes,
        }
        (partial / "index.json").write_text(json.dumps(index, ensure_ascii=False, indent=1), "utf-8")

    durable.write_folder(folder, fill)


def _widen(path: Path, narrow: str, wide: np.dtype[Any]) -> None:
    """Rewrite a file of integers with more bytes for each."""
    wider = path.with_name(f"{path.name}.wider")
    with path.open("rb") as old, wider.open("wb") as new:
        while len(values := np.fromfile(old, narrow, REWRITTEN)):
            new.write(values.astype(wide).tobytes())
    wider.replace(path)


def held_out(folder: Path) -> list[Row]:
    """The rows that were kept back."""
    with (folder / "held_out.jsonl").open(encoding="utf-8") as lines:
        return [Row(**json.loads(line)) for line in lines]


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    left = iter(rows)
    return iter(lambda: list(islice(left, CHUNK)), [])
