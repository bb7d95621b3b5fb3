"""A label: a cell is one of a few short strings."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from regard import durable
from regard.errors import CheckpointError, DataError, did_you_mean, quoted
from regard.fields.field import Coded, Field, FieldSettings, Width
from regard.files.formats import text_cell
from regard.files.lines import UNDECODED

MOST_LABELS = 10_000
LONGEST = 1000
"""Characters of a label."""
USUAL_LENGTH, FEW, MANY = 40, 50, 200
"""Characters that labels rarely have more of; different ones that a column of them usually has, one a cell or
several.
"""
RECURS = 10
"""Rows there are, at least, for each different label."""


class LabelSettings(FieldSettings):
    kind: Literal["label"] = "label"


@dataclass(frozen=True)
class Label(Field):
    kind: ClassVar[str] = "label"
    settings: ClassVar[type[FieldSettings]] = LabelSettings
    reads: ClassVar[str] = ""
    names: tuple[str, ...] = ()
    """Labels in the order of their numbers."""
    optional: bool = False

    @classmethod
    def resembles(cls, cells: Sequence[Any]) -> float:
        """1 for few, short, recurring strings."""
        if not all(isinstance(cell, str) for cell in cells):
            return 0.0
        return float(are_labels(set(cells), len(cells), FEW))

    @classmethod
    def of(cls, settings: LabelSettings) -> Self:
        return cls()

    @property
    def sample(self) -> str:
        return self.names[0]

    @property
    def width(self) -> Width:
        return {"classes": len(self.names)}

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> str:
        if isinstance(cell, list):
            raise DataError(
                f"{where}: {name} is an array; texts with several labels are for the task multilabel "
                "(regard init --task multilabel)"
            )
        return text_cell(where, name, cell)

    def fit(self, values: Iterable[str]) -> Self:
        return replace(self, names=tuple(sorted(set(values))))

    def parse(self, cell: str, where: str) -> str:
        if not cell:
            raise DataError(f"{where}: the label is empty; give every text one")
        if cell not in self.names:
            near = did_you_mean(cell, self.names)
            raise DataError(f"{where}: label {quoted(cell)} does not occur in the training data{near}")
        return cell

    def encode(self, values: Sequence[str]) -> list[Coded]:
        return [Coded({"label": np.array([self.names.index(value)])}) for value in values]

    def save(self, folder: Path) -> None:
        write_names(folder, self.names)

    def load(self, folder: Path) -> Self:
        return replace(self, names=tuple(read_names(folder)))


def are_labels(names: Collection[str], n_cells: int, most: int) -> bool:
    """True if the different parts of so many cells look like names of classes."""
    return 2 <= len(names) <= max(2, min(most, n_cells // RECURS)) and max(map(len, names)) <= USUAL_LENGTH


def refuse_texts(labels: Iterable[str], where: str, role: str) -> None:
    """DataError for what is so long that it can be no label, and no tag."""
    longest = max(map(len, labels), default=0)
    if longest > LONGEST:
        raise DataError(
            f"{where}: a {role.removesuffix('s')} of {longest:,} characters looks like text; "
            f"choose the right column with data.columns.{role}"
        )


def write_names(folder: Path, names: Sequence[str]) -> None:
    write_list(folder / "labels.json", names)


def read_names(folder: Path) -> list[str]:
    path = folder / "labels.json"
    names = read_list(path)
    if not (
        isinstance(names, list)
        and all(isinstance(name, str) and not UNDECODED.search(name) for name in names)
        and len(set(names)) == len(names) > 1
    ):
        raise CheckpointError(f"{path}: should hold a list of at least two labels, all different")
    return names


def write_list(path: Path, value: Sequence[Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")


def read_list(path: Path) -> Any:
    try:
        return durable.read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: the labels cannot be read ({error})") from error
