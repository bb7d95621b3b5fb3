"""A history of items: what a user chose, in the order of time; and the catalogue of all that can be chosen.

Field and input at once: a history is read alone, its end if it is long.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Setting
from pydantic import StringConstraints

from regard import durable
from regard.errors import CheckpointError, DataError, quoted
from regard.fields.axis import Axis
from regard.fields.field import Arrays, Coded, Field, FieldSettings, Limits, Occlusion, Width
from regard.fields.padding import lengths, padded
from regard.files.catalogue import Described
from regard.files.formats import kind_of, text_cell
from regard.files.interactions import LONGEST, Grouping
from regard.files.lines import nearest

FILE = "catalogue.json"
FORMAT_VERSION = 1
UNKNOWN = -1
"""The number of an item that is not in the catalogue."""
HIDDEN = "?"
"""Name of a hidden item, whose number is the one after the last."""
MOST_ASKED = 10_000
"""Items of a history that somebody asks about."""
MOST_COMPARED = 100_000
"""Items of a catalogue that an unknown one is compared with for a likely spelling."""


class ItemsSettings(FieldSettings):
    kind: Literal["items"] = "items"
    min_user: int = Setting(
        1, ge=1, description="leave out histories with fewer interactions; with min_item the k-core"
    )
    min_item: int = Setting(1, ge=1, description="leave out items with fewer interactions")
    min_rating: float | None = Setting(None, description="leave out interactions rated lower")
    session_gap: float | None = Setting(
        None, gt=0, description="minutes without interactions after which a new history of the user begins"
    )
    repeats: Literal["keep", "first", "last"] = Setting(
        "keep", description="which interactions of a user with the same item count: all, the first, the last"
    )
    lines: Literal["user items", "items"] = Setting(
        "user items", description="what a line of plain text holds: a user and items, or items alone"
    )

    @property
    def grouping(self) -> Grouping:
        return Grouping(**self.model_dump(exclude={"kind"}))


@dataclass(frozen=True)
class Items(Field):
    """Arrays: `items`, numbers of the catalogue; `times` in seconds, where they are known."""

    kind: ClassVar[str] = "items"
    settings: ClassVar[type[FieldSettings]] = ItemsSettings
    reads: ClassVar[str] = "items"
    example: ClassVar[str] = '"an-item another-item"'
    names: tuple[str, ...] = ()
    """The catalogue, by number: the most frequent first."""
    counts: tuple[int, ...] = ()
    """Number of times each occurs in the training histories."""
    described: Mapping[str, Described] = field(default_factory=dict)
    limit: int = 50
    """Items of a history that are read, its last ones."""
    optional: bool = False
    name: str = "history"

    @classmethod
    def of(cls, settings: ItemsSettings) -> Self:
        return cls()

    @property
    def sample(self) -> list[str]:
        return [self.names[0]]

    @property
    def width(self) -> Width:
        return {"items": len(self.names)}

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def about(self, name: str) -> Described:
        """Title and category of an item; nothing where the catalogue does not say."""
        return self.described.get(name, Described(""))

    def title(self, name: str) -> str:
        """Title of an item; its own name where the catalogue has none."""
        return self.about(name).title or name

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> list[str]:
        if isinstance(cell, str):
            cell = cell.split()
        if not isinstance(cell, list):
            raise DataError(
                f"{where}: {name} is {kind_of(cell)}; it must be a list of items, the oldest first"
            )
        if len(cell) > MOST_ASKED:
            raise DataError(f"{where}: {name} has {len(cell):,} items, the limit is {MOST_ASKED:,}")
        return [_item(part, where, f"item {number} of {name}") for number, part in enumerate(cell, 1)]

    def fit(self, values: Iterable[Sequence[str]]) -> Self:
        counts: Counter[str] = Counter()
        for history in values:
            counts.update(history)
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        return replace(
            self, names=tuple(name for name, _ in ordered), counts=tuple(count for _, count in ordered)
        )

    def parse(self, cell: list[str], where: str) -> list[str]:
        return cell

    def encode(self, values: Sequence[Sequence[str]]) -> list[Coded]:
        encoded = [[self.numbers.get(name, UNKNOWN) for name in history] for history in values]
        return [
            Coded(
                {"items": np.array(numbers, np.int32)},
                {"unknown": [name for name, number in zip(history, numbers, strict=True) if number < 0]},
            )
            for history, numbers in zip(values, encoded, strict=True)
        ]

    def refuse_strange(self, history: Sequence[str], where: str) -> None:
        """DataError for a history of which nothing is known."""
        if not history:
            raise DataError(f"{where}: the history is empty; give at least one item")
        if not any(name in self.numbers for name in history):
            near = nearest(history[-1], self.names) if len(self.names) <= MOST_COMPARED else ""
            whose = (
                f"item {quoted(history[-1])} is not"
                if len(history) == 1
                else f"none of its {len(history)} items is"
            )
            raise DataError(f"{where}: {whose} in the catalogue of the training data{near}")

    def save(self, folder: Path) -> None:
        value = {
            "format_version": FORMAT_VERSION,
            "items": self.names,
            "counts": self.counts,
            "described": {name: self.described[name] for name in self.names if name in self.described},
        }
        (folder / FILE).write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")

    def load(self, folder: Path) -> Self:
        path = folder / FILE
        try:
            value = durable.read_json(path)
            names, counts = tuple(map(str, value["items"])), tuple(map(int, value["counts"]))
            described = {str(name): Described(*map(str, pair)) for name, pair in value["described"].items()}
        except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{path}: the catalogue cannot be read ({error})") from error
        if len(set(names)) != len(names) or len(counts) != len(names):
            raise CheckpointError(f"{path}: should hold items, all different, with a count for each")
        return replace(self, names=names, counts=counts, described=described)

    def typed(self, text: str, name: str) -> Any:
        """Items with spaces between them, or a JSON list where their names hold spaces."""
        return super().typed(text, name) if text.lstrip().startswith("[") else text

    def request(self, limits: Limits) -> Any:
        one = Annotated[str, StringConstraints(min_length=1, max_length=min(LONGEST, limits.characters))]
        return Annotated[list[one], Setting(min_length=1, max_length=min(MOST_ASKED, limits.characters))]

    def cost(self, cell: Any) -> int:
        return min(self.limit, len(cell.split() if isinstance(cell, str) else cell))

    def alone(self, limit: int) -> Self:
        """The input of an encoder that reads so many items at most."""
        return replace(self, limit=limit)

    @property
    def most(self) -> int:
        return self.limit

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        (part,) = parts
        return part

    def is_empty(self, arrays: Arrays) -> bool:
        return bool((arrays["items"] < 0).all())

    def size(self, arrays: Arrays) -> int:
        return max(1, min(self.limit, len(arrays["items"])))

    def read(self, arrays: Arrays) -> Arrays:
        """The last known items of a history, which are read."""
        places = np.flatnonzero(arrays["items"] >= 0)[-self.limit :]
        return {name: array[places] for name, array in arrays.items()}

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        items = [arrays["items"] for arrays in many]
        batch: dict[str, NDArray[Any]] = {"items": padded(items), "lengths": lengths(items)}
        batch["times"] = np.zeros(batch["items"].shape)
        for row_T, arrays in zip(batch["times"], many, strict=True):
            if "times" in arrays:
                row_T[: len(arrays["times"])] = arrays["times"]
        return batch

    def without(self, batch: Arrays, axis: Axis, units: Sequence[int], how: Occlusion) -> Arrays:
        """Whatever is asked, an item is removed: no other could stand for nothing."""
        length = batch["items"].shape[1]
        kept = np.stack([np.delete(np.arange(length), unit) for unit in units])
        shorter = {name: batch[name][0][kept] for name in ("items", "times")}
        return {**shorter, "lengths": np.full(len(units), length - 1)}

    def axis(self, values: Sequence[Sequence[str]], coded: Coded) -> Axis:
        numbers = self.read(coded.arrays)["items"].tolist()
        titles = [self.title(self.names[each]) if each < len(self.names) else HIDDEN for each in numbers]
        fixed = frozenset(place for place, each in enumerate(numbers) if each == len(self.names))
        return Axis(self.name, tuple(titles), unit="item", fixed=fixed)


def _item(part: object, where: str, name: str) -> str:
    found = str(part) if type(part) in (int, float) else text_cell(where, name, part)
    if not found:
        raise DataError(f"{where}: {name} is empty")
    return found
