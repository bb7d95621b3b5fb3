"""Any number of labels: a cell is a string with a separator between them, or a list of strings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from regard.errors import DataError, did_you_mean, quoted
from regard.fields.field import Coded, Field, FieldSettings, Suggestion, Width
from regard.fields.label import MANY, are_labels, read_names, write_names
from regard.files.formats import text_cell

SEPARATORS = ("|", ";", ",")
COMBINED = 0.05
"""Share of labelled cells with more than one label from which a column is one of several labels."""


class LabelsSettings(FieldSettings):
    kind: Literal["labels"] = "labels"
    separator: str = ","


@dataclass(frozen=True)
class Labels(Field):
    kind: ClassVar[str] = "labels"
    settings: ClassVar[type[FieldSettings]] = LabelsSettings
    reads: ClassVar[str] = ""
    separator: str = ","
    names: tuple[str, ...] = ()
    """Labels in the order of their numbers."""
    optional: bool = False

    @classmethod
    def resembles(cls, cells: Sequence[Any]) -> float:
        """1 for lists of strings, or strings with something between their parts, that are labels in more than
        one combination.
        """
        return float(_are_combined(cells, ",") if _are_lists(cells) else separator(cells) is not None)

    @classmethod
    def suggest(cls, cells: Sequence[Any]) -> Suggestion:
        between = None if _are_lists(cells) else separator(cells)
        if between is None:
            return Suggestion()
        seen = f"it stands in {sum(between in cell for cell in cells):,} of {len(cells):,} cells"
        return Suggestion({"separator": between}, 1, {"separator": seen})

    @classmethod
    def of(cls, settings: LabelsSettings) -> Self:
        return cls(settings.separator)

    @property
    def sample(self) -> str:
        return ""

    @property
    def width(self) -> Width:
        return {"classes": len(self.names)}

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> str | list[str]:
        if not isinstance(cell, list):
            return text_cell(where, name, cell)
        return [text_cell(where, f"part {number} of {name}", part) for number, part in enumerate(cell, 1)]

    def fit(self, values: Iterable[str]) -> Self:
        return replace(self, names=tuple(sorted(set(values))))

    def split(self, cell: str | list[str]) -> tuple[str, ...]:
        """The labels in a cell, each once; an empty cell has none."""
        parts = cell if isinstance(cell, list) else cell.split(self.separator)
        return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))

    def parse(self, cell: str | list[str], where: str) -> tuple[str, ...]:
        labels = self.split(cell)
        for label in labels:
            if label not in self.names:
                near = did_you_mean(label, self.names)
                raise DataError(f"{where}: label {quoted(label)} does not occur in the training data{near}")
        return labels

    def encode(self, values: Sequence[tuple[str, ...]]) -> list[Coded]:
        numbers = {name: number for number, name in enumerate(self.names)}
        return [Coded({"labels": np.array([numbers[name] for name in names], np.int64)}) for names in values]

    def save(self, folder: Path) -> None:
        write_names(folder, self.names)

    def load(self, folder: Path) -> Self:
        return replace(self, names=tuple(read_names(folder)))


def separator(cells: Sequence[Any]) -> str | None:
    """The sign between the labels of a cell, if there is one that makes them labels."""
    if not all(isinstance(cell, str) for cell in cells):
        return None
    return next((between for between in SEPARATORS if _are_combined(cells, between)), None)


def _are_lists(cells: Sequence[Any]) -> bool:
    return bool(cells) and all(
        isinstance(cell, list) and all(isinstance(part, str) for part in cell) for cell in cells
    )


def _are_combined(cells: Sequence[Any], between: str) -> bool:
    """True if few, short and recurring parts stand in more combinations than there are parts."""
    sets = [Labels(between).split(cell) for cell in cells]
    names = set(chain.from_iterable(sets))
    combined = sum(len(labels) > 1 for labels in sets) / max(1, sum(map(bool, sets)))
    different = len({frozenset(labels) for labels in sets})
    return combined >= COMBINED and len(names) < different and are_labels(names, len(cells), MANY)
