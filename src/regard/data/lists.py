"""Lists in JSON and Parquet as one text: the words of a sentence, their tags, the labels of a text."""

from collections.abc import Mapping
from dataclasses import dataclass

from regard.data.conll import INSIDE_A_WORD
from regard.data.formats import scalar
from regard.errors import DataError, quoted


@dataclass(frozen=True)
class Lists:
    """What stands between the parts of a role that may be a list, where it is a text."""

    separators: Mapping[str, str]

    def joined(self, where: str, name: str, value: list[object], role: str) -> str:
        parts = [scalar(where, f"part {number} of {name}", part) for number, part in enumerate(value, 1)]
        separator = self.separators[role]
        if separator == " ":
            parts = [INSIDE_A_WORD.join(part.split()) or INSIDE_A_WORD for part in parts]
        for part in parts:
            if separator in part:
                raise DataError(
                    f"{where}: {quoted(part)} in {name} holds {separator!r}, which is to stand between "
                    "labels; set task.separator to what none of them holds"
                )
        return separator.join(parts)


WORDS = Lists({"text": " ", "tags": " "})
