"""Begins and ends of words around the moments when their labels are written."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from regard import durable
from regard.errors import CheckpointError

LEAST = 5
"""Times that a word is seen before it has borders of its own."""
UNLEARNT = (-0.04, 0.04)
"""Seconds around a label where nothing has been learnt."""
FILE = "word_borders.json"

Border = tuple[float, float]
"""Seconds from the first label to the beginning, and from the last label to the end."""


@dataclass(frozen=True)
class WordBorders:
    """The median of validation data, of each word that is common there, and of all."""

    usual: Border = UNLEARNT
    by_word: Mapping[str, Border] = field(default_factory=dict)

    def around(self, word: str, first: float, last: float) -> tuple[float, float]:
        """Begin and end of a word whose first and last label were written at these moments."""
        before, after = self.by_word.get(word, self.usual)
        start = max(0.0, first + before)
        return start, max(start, last + after)

    @classmethod
    def of(cls, found: Mapping[str, Sequence[Border]]) -> "WordBorders":
        """The medians of borders that were found, by word."""
        every = [border for borders in found.values() for border in borders]
        if not every:
            return cls()
        common = {word: _median(borders) for word, borders in sorted(found.items()) if len(borders) >= LEAST}
        return cls(_median(every), common)

    def save(self, folder: Path) -> None:
        content = {"format_version": 1, "usual": self.usual, "by_word": dict(self.by_word)}
        (folder / FILE).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "WordBorders":
        path = folder / FILE
        try:
            saved = durable.read_json(path)
            usual, by_word = _border(saved["usual"]), saved["by_word"]
            return cls(usual, {str(word): _border(border) for word, border in by_word.items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{path}: the borders of words cannot be read ({error})") from error


def _median(borders: Sequence[Border]) -> Border:
    return round(median(one[0] for one in borders), 4), round(median(one[1] for one in borders), 4)


def _border(saved: Any) -> Border:
    before, after = map(float, saved)
    return before, after
