"""Text: a cell is a string."""

from dataclasses import dataclass
from typing import ClassVar

from regard.files.formats import text_cell


@dataclass(frozen=True)
class Text:
    kind: ClassVar[str] = "text"
    synonyms: ClassVar[tuple[str, ...]] = ("text", "sentence", "review", "document", "文本", "句子")
    optional: bool = False
    verbatim: bool = False
    """Whether white space at its ends is kept, as where parts of it are known by their characters."""

    def clean(self, cell: object, where: str, name: str) -> str:
        return text_cell(where, name, cell, strip=not self.verbatim)
