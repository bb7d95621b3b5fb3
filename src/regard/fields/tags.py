"""Words and their tags: cells are lists, or strings with a space between words and between tags.

A text whose words nobody has cut is a string as well; which it is, only the tags beside it tell.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from regard import durable
from regard.errors import CheckpointError, DataError, did_you_mean, quoted
from regard.fields.field import Coded, Width
from regard.fields.label import Label
from regard.fields.text import Text
from regard.fields.windows import WordWindows
from regard.files.conll import INSIDE_A_WORD
from regard.files.formats import text_cell
from regard.text import tags
from regard.text.unicode import JOINERS, MARK, outline

Split = Literal["auto", "characters", "signs", "spaces"]
CUTS = {
    "characters": re.compile(r"\S"),
    "signs": re.compile(rf"[^\w\s{MARK}{JOINERS}]{MARK}*|[\w{MARK}]+(?:['’{JOINERS}-][\w{MARK}]+)*"),
    "spaces": re.compile(rf"[\S{INSIDE_A_WORD}]+"),
}
BETWEEN_SPACES = re.compile("[^ ]+")
Illegal = Literal["refuse", "skip", "mend"]


class Sentence(NamedTuple):
    text: str
    places: tuple[tuple[int, int], ...]
    """The characters of each word."""

    @property
    def words(self) -> list[str]:
        return [self.text[start:end] for start, end in self.places]


@dataclass(frozen=True)
class Words(Text):
    kind: ClassVar[str] = "words"
    split: Split = "auto"
    """Rule by which a text that nobody has cut becomes words."""

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Any:
        if isinstance(cell, list):
            return _parts(cell, where, name)
        return super().clean(cell, where, name, folder)

    def parse(self, cell: str | list[str], where: str) -> Any:
        if isinstance(cell, list):
            text = " ".join(cell)
            return Sentence(text, _places(BETWEEN_SPACES, text))
        pattern = outline(cell) if self.split == "signs" else cell
        return Sentence(cell, _places(CUTS[self.split], pattern))

    def encode(self, values: Sequence[Any]) -> list[Coded]:
        """A word that the vocabulary cannot spell is one unknown token."""
        ids = iter(self.tokenizer.ids([word for sentence in values for word in sentence.words]))
        unknown = [self.tokenizer.special.unknown]
        return [coded_words([next(ids) or unknown for _ in sentence.places]) for sentence in values]

    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / "words.json").write_text(json.dumps({"split": self.split}) + "\n", "utf-8")

    def load(self, folder: Path) -> Self:
        path = folder / "words.json"
        try:
            split = durable.read_json(path)["split"]
        except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}: cannot be read ({error}); copy the whole folder") from error
        if split not in list(CUTS):
            raise CheckpointError(f"{path}: split should be one of {', '.join(CUTS)}")
        return replace(super().load(folder), split=split)

    def alone(self, limit: int) -> WordWindows:
        return WordWindows((self,), limit)


@dataclass(frozen=True)
class Tags(Label):
    kind: ClassVar[str] = "tags"
    illegal: Illegal = "refuse"
    """Fate of a sentence whose tags their scheme forbids."""

    @cached_property
    def index(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def scheme(self) -> str | None:
        """Scheme that marks spans; None where tags mark none."""
        return tags.scheme(self.names)

    @property
    def width(self) -> Width:
        return {"tags": [*self.names]}

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Any:
        if not isinstance(cell, list):
            return text_cell(where, name, cell)
        parts = _parts(cell, where, name)
        if INSIDE_A_WORD in parts:
            number = parts.index(INSIDE_A_WORD) + 1
            raise DataError(f"{where}: part {number} of {name} is empty; give the word a tag")
        return parts

    def fit(self, values: Iterable[str]) -> Self:
        names = set(values)
        return replace(self, names=tuple(sorted(tags.completed(names) if self.illegal == "mend" else names)))

    def parse(self, cell: Any, where: str) -> Any:
        return words_of(cell)

    def fault(self, names: Sequence[str]) -> tuple[int, str] | None:
        """The first word whose tag cannot be, and why."""
        for number, name in enumerate(names):
            if name not in self.index:
                near = did_you_mean(name, self.names)
                return number, f"tag {quoted(name)} does not occur in the training data{near}"
        place = self._forbidden(names) if self.illegal == "refuse" else None
        if place is None:
            return None
        before = names[place - 1] if place else "the beginning"
        after = names[place] if place < len(names) else "the end of the sentence"
        return min(place, len(names) - 1), (
            f"{after} cannot stand after {before} in {self.scheme} tags; mend them (task.illegal=mend reads "
            "them as conlleval does), or leave the sentence out (task.illegal=skip)"
        )

    def encode(self, values: Sequence[Any]) -> list[Coded]:
        """Arrays: `tags`, and whether they are `legal`: what the scheme forbids has no probability."""
        mended = [self._mended(names) for names in values]
        return [
            Coded(
                {
                    "tags": np.array([self.index[name] for name in names], np.int64),
                    "legal": np.array([self._forbidden(names) is None]),
                }
            )
            for names in mended
        ]

    def _mended(self, names: Sequence[str]) -> Sequence[str]:
        mends = self.illegal == "mend" and self.scheme is not None
        return tags.repaired(str(self.scheme), names) if mends else names

    def _forbidden(self, names: Sequence[str]) -> int | None:
        return None if self.scheme is None else tags.first_fault(self.scheme, names)


def _parts(cell: list[object], where: str, name: str) -> list[str]:
    """A space inside a word does not part it."""
    parts = (text_cell(where, f"part {number} of {name}", part) for number, part in enumerate(cell, 1))
    return [INSIDE_A_WORD.join(part.split()) or INSIDE_A_WORD for part in parts]


def _places(cut: re.Pattern[str], text: str) -> tuple[tuple[int, int], ...]:
    return tuple(match.span() for match in cut.finditer(text))


def coded_words(words: Sequence[Sequence[int]]) -> Coded:
    """A sentence of the tokens of each word."""
    ids = np.array([token for word in words for token in word], np.int64)
    return Coded({"ids": ids, "word_lengths": np.array([len(word) for word in words], np.int64)})


def words_of(cell: str | list[str]) -> list[str]:
    """The words, or the tags, of a sentence that has both."""
    if isinstance(cell, list):
        return cell
    return cell.split(" ") if cell else []
