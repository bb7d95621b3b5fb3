"""Any number of labels: a cell is a string with a separator between them, or a list of strings."""

from dataclasses import dataclass
from typing import ClassVar

from regard.fields.label import Label
from regard.files.formats import text_cell


@dataclass(frozen=True)
class Labels:
    separator: str
    kind: ClassVar[str] = "labels"
    synonyms: ClassVar[tuple[str, ...]] = Label.synonyms
    optional: bool = False

    def clean(self, cell: object, where: str, name: str) -> str | list[str]:
        if not isinstance(cell, list):
            return text_cell(where, name, cell)
        return [text_cell(where, f"part {number} of {name}", part) for number, part in enumerate(cell, 1)]

    def parse(self, cell: str | list[str]) -> tuple[str, ...]:
        """The labels in a cell, each once; an empty cell has none."""
        parts = cell if isinstance(cell, list) else cell.split(self.separator)
        return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
