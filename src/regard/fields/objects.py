"""Objects in a picture: their names and boxes, which tell whether attention points at what a word names."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, Self

from regard.errors import DataError
from regard.fields.field import Coded, Field, FieldSettings

NAMES, BOXES = ("name", "class", "category", "label"), ("box", "bbox")
"""Keys that data call them by."""


@dataclass(frozen=True)
class Objects(Field):
    """A cell is a list of {"name": …, "box": [left, top, width, height]}, in pixels of the picture
    as it is in its file; data may have no such column.
    """

    kind: ClassVar[str] = "objects"
    synonyms: ClassVar[tuple[str, ...]] = ("objects", "boxes")
    settings: ClassVar[type[FieldSettings]] = FieldSettings
    reads: ClassVar[str] = ""
    optional: bool = True

    @classmethod
    def of(cls, settings: Any) -> Self:
        return cls()

    @property
    def sample(self) -> list[Any]:
        return []

    @property
    def width(self) -> Mapping[str, Any]:
        return {}

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> list[dict[str, Any]]:
        if isinstance(cell, str):
            try:
                cell = json.loads(cell) if cell.strip() else []
            except (ValueError, RecursionError):
                raise DataError(
                    f"{where}: {name} is not JSON; give a list of objects with name and box"
                ) from None
        return [
            _cleaned(one, f"{where}: {name}: number {number}")
            for number, one in enumerate(cell if isinstance(cell, list) else [None], 1)
        ]

    def fit(self, values: Iterable[Any]) -> Self:
        return self

    def parse(self, cell: Any, where: str) -> Any:
        return cell

    def encode(self, values: Sequence[Any]) -> list[Coded]:
        return [Coded({}) for _ in values]

    def save(self, folder: Path) -> None:
        return None

    def load(self, folder: Path) -> Self:
        return self


def _cleaned(one: object, where: str) -> dict[str, Any]:
    try:
        assert isinstance(one, Mapping)
        name = next(one[key] for key in NAMES if key in one)
        left, top, width, height = (float(side) for side in next(one[key] for key in BOXES if key in one))
    except (AssertionError, StopIteration, TypeError, ValueError):
        raise DataError(f'{where} must be {{"name": "dog", "box": [left, top, width, height]}}') from None
    if not all(map(isfinite, (left, top, width, height))) or min(width, height) <= 0:
        raise DataError(f"{where}: the box {left:g}, {top:g}, {width:g} × {height:g} holds no pixels")
    return {"name": str(name), "box": [left, top, width, height]}
