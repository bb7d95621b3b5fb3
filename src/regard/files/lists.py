"""Lists in JSON and Parquet as one text: the words of a sentence, their tags, the labels of a text."""

from collections.abc import Mapping
from dataclasses import dataclass

from regard.errors import DataError, quoted
from regard.files.conll import INSIDE_A_WORD
from regard.files.formats import scalar


@dataclass(frozen=True)
class Lists:
    """What stands between the parts of a role that may be a list, where it is a text."""

    separators: Mapping[str, str]
    in_words: bool = False
    """The parts are words, or their tags: a space inside one does not part it."""

    def joined(self, where: str, name: str, value: list[object], role: str) -> str:
        parts = [scalar(where, f"part {number} of {name}", part) for number, part in enumerate(value, 1)]
        if self.in_words:
            if role == "tags" and "" in parts:
                number = parts.index("") + 1
                raise DataError(f"{where}: part {number} of {name} is empty; give the word a tag")
            parts = [INSIDE_A_WORD.join(part.split()) or INSIDE_A_WORD for part in parts]
        separator = self.separators[role]
        for part in parts:
            if f"{part}{separator}".split(separator) != [part, ""]:
                raise DataError(
                    f"{where}: {quoted(part)} in {name} holds {separator!r} or ends like it, which is to "
                    "stand between labels; set task.separator to what none of them holds"
                )
        return separator.join(parts)


WORDS = Lists({"text": " ", "tags": " "}, in_words=True)
