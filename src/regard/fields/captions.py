"""Captions: a cell holds one or several texts about one thing, all of them right."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from regard.errors import DataError
from regard.fields.text import Text
from regard.files.formats import kind_of, text_cell

TEXT_KEYS = ("caption", "raw", "text", "sentence")
"""Keys that the text of a caption has, where it is an object."""


@dataclass(frozen=True)
class Captions(Text):
    kind: ClassVar[str] = "captions"
    synonyms: ClassVar[tuple[str, ...]] = ("captions", "caption", "sentences", "描述", "说明")

    @classmethod
    def resembles(cls, cells: Sequence[Any]) -> float:
        """The share of texts, or of lists of texts."""
        plain = [one[0] if isinstance(one, list) and one else one for one in cells]
        return super().resembles(plain)

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Any:
        """The texts, without blank ones."""
        several = cell if isinstance(cell, list) else [cell]
        texts = []
        for number, one in enumerate(several, 1):
            what = name if not isinstance(cell, list) else f"number {number} of {name}"
            if isinstance(one, dict):
                one = next((one[key] for key in TEXT_KEYS if key in one), None)
            if isinstance(one, list | dict) or one is None:
                raise DataError(f"{where}: {what} is {kind_of(one)}; it must be a text")
            texts.append(" ".join(text_cell(where, what, one).split()))
        return [text for text in texts if text]
