"""A label: a cell is one of a few short strings."""

from dataclasses import dataclass
from typing import ClassVar

from regard.errors import DataError
from regard.files.formats import text_cell


@dataclass(frozen=True)
class Label:
    kind: ClassVar[str] = "label"
    synonyms: ClassVar[tuple[str, ...]] = (
        *("label", "labels", "class", "category", "sentiment", "relation"),
        *("标签", "类别", "关系"),
    )
    optional: bool = False

    def clean(self, cell: object, where: str, name: str) -> str:
        if isinstance(cell, list):
            raise DataError(
                f"{where}: {name} is an array; texts with several labels are for the task multilabel "
                "(regard init --task multilabel)"
            )
        return text_cell(where, name, cell)
