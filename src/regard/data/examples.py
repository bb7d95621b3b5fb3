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
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard import durable
from regard.errors import DataError
from regard.files.documents import goes_on
from regard.files.source import Row
from regard.text.tokenizer import Tokenizer

FORMAT_VERSION = 2
CHUNK = 4096
"""Rows encoded together."""
REWRITTEN = 2**20
"""Integers that are made wider together."""
END, MOST_OF_END = 10, 1_000_000
"""Of a text without documents its last tenth is kept back, but no more than so many characters."""

ADDED = 8
"""Pieces that a task may add to its vocabulary at most."""

Ints = NDArray[np.integer]
Kept = tuple[Ints, ...]
"""What of an example is kept: one sequence of integers per column."""
Ex = TypeVar("Ex")


class Encoder(Protocol[Ex]):
    """The part of a task that makes examples of rows."""

    @property
    def tokenizers(self) -> dict[str, Tokenizer]: ...

    def encode(self, rows: Sequence[Row]) -> list[Ex]: ...

    def usable(self, example: Ex) -> bool: ...

    def size(self, example: Ex) -> tuple[int, ...]: ...

    def keep(self, example: Ex) -> Kept: ...

    def revive(self, row: Row, kept: Kept) -> Ex: ...


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
        self, encoder: Encoder[Any], arrays: dict[str, Ints], files: Sequence[str], n_left_out: int = 0
    ) -> None:
        n_columns = sum(name.endswith(".values") for name in arrays)
        self._encoder, self._files = encoder, files
        self._columns = [Ragged(arrays[f"{n}.values"], arrays[f"{n}.ends"]) for n in range(n_columns)]
        self._places = arrays["places"]
        self.sizes = arrays["sizes"]
        self.n_left_out = n_left_out
        """Rows that cannot be trained on."""

    @classmethod
    def of(cls, encoder: Encoder[Any], rows: Iterable[Row]) -> Self:
        """In memory."""
        made = _Maker(encoder)
        chunks = [arrays for chunk in _chunks(rows) if (arrays := made.arrays(chunk))]
        nothing: dict[str, Ints] = {"sizes": np.zeros((0, 1), int), "places": np.zeros((0, 2), int)}
        arrays = {part: np.concatenate([chunk[part] for chunk in chunks]) for part in (chunks or [{}])[0]}
        return cls(encoder, arrays or nothing, made.files, made.n_left_out)

    @classmethod
    def open(cls, encoder: Encoder[Any], folder: Path) -> Self | None:
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

    def row(self, i: int) -> Row:
        """Where it came from; its text is not kept."""
        file, line = self._places[i]
        return Row({}, self._files[file], int(line))


class _Maker:
    """Rows → arrays, chunk by chunk; the ends of sequences and the numbers of files run on.

    Integers have the bytes that the vocabulary needs, or more in a chunk that holds larger ones.
    """

    def __init__(self, encoder: Encoder[Any]) -> None:
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
    encoder: Encoder[Any],
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


def closes(row: Row) -> bool:
    """Whether the next row is another document, and not a part of the same."""
    return not any(map(goes_on, row.fields.values()))


def without_every(
    n: int | None, rows: Iterable[Row], kept_back: list[Row], together: str | None = None
) -> Iterator[Row]:
    """The rows but every n-th, with all its parts, which go to `kept_back`; all of them without a number."""
    for number, row in numbered(rows, together):
        if n is None or number % n:
            yield row
        else:
            kept_back.append(row)


def numbered(rows: Iterable[Row], together: str | None = None) -> Iterator[tuple[int, Row]]:
    """Rows with the number, from 1, of what is held out as a whole.

    That is a document with all its parts, or neighbours that come from one record or have the same text in
    the role `together`.
    """
    number, before = 1, None
    for row in rows:
        number += before is not None and not _is_one(before, row, together)
        yield number, row
        before = row


def _is_one(before: Row, row: Row, together: str | None) -> bool:
    if together is not None:
        of_one_record = (before.file, before.line) == (row.file, row.line)
        return of_one_record or before.fields[together] == row.fields[together]
    return not closes(before)


def before_end(rows: Iterable[Row]) -> int:
    """How many characters of a text are not of its end."""
    n_characters = sum(len(row.fields["text"]) for row in rows)
    return n_characters - min(n_characters // END, MOST_OF_END)


def without_end(left: int, rows: Iterable[Row], kept_back: list[Row]) -> Iterator[Row]:
    """The first `left` characters of a text; the rest goes to `kept_back`, and a row in between is cut."""
    for row in rows:
        text = row.fields["text"]
        if left > 0:
            yield row if left >= len(text) else replace(row, fields={"text": text[:left]})
        if left < len(text):
            kept_back.append(replace(row, fields={"text": text[max(0, left) :]}))
        left -= len(text)


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    left = iter(rows)
    return iter(lambda: list(islice(left, CHUNK)), [])
