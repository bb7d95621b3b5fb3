"""Any number of labels: a cell is a string with a separator between them, or a list of strings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np

from regard.errors import DataError, did_you_mean, quoted
from regard.fields.field import Coded, Field, FieldSettings, Width
from regard.fields.label import Label, read_names, write_names
from regard.files.formats import text_cell


class LabelsSettings(FieldSettings):
    kind: Literal["labels"] = "labels"
    separator: str = ","


@dataclass(frozen=True)
class Labels(Field):
    kind: ClassVar[str] = "labels"
    synonyms: ClassVar[tuple[str, ...]] = Label.synonyms
    settings: ClassVar[type[FieldSettings]] = LabelsSettings
    reads: ClassVar[str] = ""
    separator: str = ","
    names: tuple[str, ...] = ()
    """In the order of their numbers."""
    optional: bool = False

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
