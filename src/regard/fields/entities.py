"""A sentence with two marked entities: a cell is a text with `<e1>…</e1>` and `<e2>…</e2>`.

A sentence is cut at the marks before it becomes tokens, so that no token crosses the border of an entity, as
many would where words have no spaces between them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regard.fields.axis import Axis, ended
from regard.fields.field import Arrays, Coded, Width
from regard.fields.joined import Joined
from regard.fields.text import Text
from regard.text.entity_marks import MARKS, Marked, read_marked
from regard.text.tokenizer import Encoded

BLANK = Marked("", (0, 0), (0, 0))


@dataclass(frozen=True)
class Entities(Text):
    kind: ClassVar[str] = "entities"

    def parse(self, cell: str, where: str) -> Any:
        return read_marked(cell, where) if cell.strip() else BLANK

    def encode(self, values: Sequence[Any]) -> list[Coded]:
        """Keep texts as they are: where a sentence is cut decides which tokens it has."""
        return [Coded({}, {"marked": value}) for value in values]


@dataclass(frozen=True)
class MarkedText(Joined):
    """A sentence whose entities stand between tokens beyond the vocabulary, which no text can spell."""

    @property
    def first_mark(self) -> int:
        return len(self.fields[0].tokenizer)

    @property
    def width(self) -> Width:
        return {"vocab": self.first_mark + len(MARKS)}

    def placed(self, marked: Marked) -> "Placed":
        return placed(marked, self.fields[0].tokenizer.encode, self.first_mark, self.limit)

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        (part,) = parts
        placed = self.placed(part.notes["marked"])
        ids = np.array(self.fields[0].tokenizer.with_special_tokens(placed.ids))
        return Coded({"ids": ids}, {"cut": placed.cut})

    def is_empty(self, arrays: Arrays) -> bool:
        return len(arrays["ids"]) <= len(self.fields[0].tokenizer.with_special_tokens(())) + len(MARKS)

    def is_mark(self, ids: Any) -> Any:
        """The entities' marks too: the text cannot be read without them."""
        return super().is_mark(ids) | (ids >= self.first_mark)

    def axis(self, values: Sequence[Any], coded: Coded) -> Axis:
        tokenizer, placed = self.fields[0].tokenizer, self.placed(values[0])
        marks = tokenizer.tokens(tokenizer.with_special_tokens(()))
        return ended(self.name, (*marks[:-1], *tokenizer.visible(placed.ids, placed.words), marks[-1]))


class Token(NamedTuple):
    id: int
    word: str
    """The text it stands for."""


class Placed(NamedTuple):
    """A sentence with its marks, ready to be framed."""

    ids: list[int]
    words: list[str]
    """The text each of them stands for."""
    cut: bool
    """It was too long; what is far from the entities was left out."""


def placed(marked: Marked, encode: Callable[[str], Encoded], first_mark: int, most: int) -> Placed:
    """`most` tokens, marks included."""
    parts = [_tokens(text, encode) for text in _parts(marked)]
    kept = _near(parts, most - len(MARKS))
    marks = [0, 1, 2, 3] if marked.first <= marked.second else [2, 3, 0, 1]
    ids: list[int] = []
    words: list[str] = []
    for number, part in enumerate(kept):
        ids += [token.id for token in part]
        words += [token.word for token in part]
        if number < len(marks):
            ids.append(first_mark + marks[number])
            words.append(MARKS[marks[number]])
    return Placed(ids, words, cut=sum(map(len, kept)) < sum(map(len, parts)))


def _parts(marked: Marked) -> list[str]:
    """Tokens before, in, between, in and after the entities."""
    first, second = sorted((marked.first, marked.second))
    return [marked.text[begin:end] for begin, end in pairwise((0, *first, *second, len(marked.text)))]


def _tokens(text: str, encode: Callable[[str], Encoded]) -> list[Token]:
    if not text.strip():
        return []
    ids, offsets = encode(text)
    return [Token(id_, text[begin:end]) for id_, (begin, end) in zip(ids, offsets, strict=True)]


def _near(parts: Sequence[list[Token]], room: int) -> list[list[Token]]:
    """Keep as many tokens as there is room for: the entities, then those between, then those around."""
    before, one, between, other, after = parts
    one, other = one[: room // 2], other[: room // 2]
    room -= len(one) + len(other)
    if len(between) > room:
        between = between[: room - room // 2] + between[len(between) - room // 2 :]
    room -= len(between)
    n_before = min(len(before), max(room // 2, room - len(after)))
    return [before[len(before) - n_before :], one, between, other, after[: room - n_before]]
