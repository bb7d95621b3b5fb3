"""Documents of plain text, and what a language model reads of them: a stream of tokens, in which an end mark
closes each document.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regard.fields.axis import Axis, ended
from regard.fields.field import Arrays, Coded
from regard.fields.joined import Joined
from regard.fields.text import Text
from regard.files.documents import goes_on


@dataclass(frozen=True)
class Document(Text):
    """A document, or a part of one. Arrays: `ids`, and `closes`: whether the document ends with it."""

    kind: ClassVar[str] = "document"

    def encode(self, values: Sequence[str]) -> list[Coded]:
        return [
            Coded({**coded.arrays, "closes": np.array([not goes_on(value)], np.int64)})
            for coded, value in zip(super().encode(values), values, strict=True)
        ]

    def streamed(self, block: int) -> "Passage":
        """The input of a model that reads so many tokens of the stream at once."""
        return Passage((self,), block)


@dataclass(frozen=True)
class Passage(Joined):
    """A passage of the stream. Array: `ids`, without marks around them.

    That of a row ends with an end mark where its document does; the note `closed` says so.
    """

    @property
    def most(self) -> int:
        return self.limit

    @property
    def end(self) -> int:
        """The mark that closes a document."""
        return self.fields[0].tokenizer.special.end

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        (part,) = parts
        ids, closed = part.arrays["ids"], bool(part.arrays["closes"][0])
        return Coded({"ids": np.append(ids, self.end) if closed else ids}, {"closed": closed})

    def opened(self, coded: Coded) -> Any:
        """The ids of a text that is to go on: without the mark that closes it."""
        return coded.arrays["ids"][:-1] if coded.notes.get("closed") else coded.arrays["ids"]

    def is_empty(self, arrays: Arrays) -> bool:
        return bool((arrays["ids"] == self.end).all())

    def axis(self, values: Sequence[str], coded: Coded) -> Axis:
        return ended(self.name, tuple(self.fields[0].tokenizer.tokens(coded.arrays["ids"].tolist())))
