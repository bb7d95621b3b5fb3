"""Words and their tags: cells are lists, or strings with a space between words and between tags.

A text whose words nobody has cut is a string as well; which it is, only the tags beside it tell.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from regard.errors import DataError
from regard.files.conll import INSIDE_A_WORD
from regard.files.formats import text_cell


@dataclass(frozen=True)
class Words:
    kind: ClassVar[str] = "words"
    synonyms: ClassVar[tuple[str, ...]] = ("text", "sentence", "tokens", "words", "文本", "句子", "词语")
    optional: bool = False

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> str | list[str]:
        return _parts(cell, where, name) if isinstance(cell, list) else text_cell(where, name, cell)


@dataclass(frozen=True)
class Tags:
    kind: ClassVar[str] = "tags"
    synonyms: ClassVar[tuple[str, ...]] = ("tags", "ner_tags", "pos_tags", "upos", "标注")
    optional: bool = False

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> str | list[str]:
        if not isinstance(cell, list):
            return text_cell(where, name, cell)
        parts = _parts(cell, where, name)
        if INSIDE_A_WORD in parts:
            number = parts.index(INSIDE_A_WORD) + 1
            raise DataError(f"{where}: part {number} of {name} is empty; give the word a tag")
        return parts


def _parts(cell: list[object], where: str, name: str) -> list[str]:
    """A space inside a word does not part it."""
    parts = (text_cell(where, f"part {number} of {name}", part) for number, part in enumerate(cell, 1))
    return [INSIDE_A_WORD.join(part.split()) or INSIDE_A_WORD for part in parts]


def words_of(cell: str | list[str]) -> list[str]:
    """The words, or the tags, of a sentence that has both."""
    if isinstance(cell, list):
        return cell
    return cell.split(" ") if cell else []
