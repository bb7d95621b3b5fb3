"""Documents of plain text, and what a language model reads of them: a stream of tokens, in which an end mark
closes each document.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from regard.fields.axis import Axis, ended
from regard.fields.field import Arrays, Coded, Width
from regard.fields.padding import lengths, padded
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
        return Passage(self, block)


@dataclass(frozen=True)
class Passage:
    """A passage of the stream. Array: `ids`, without marks around them.

    That of a row ends with an end mark where its document does; the note `closed` says so.
    """

    text: Document
    block: int
    name: str = "text"

    @property
    def fields(self) -> tuple[Document]:
        return (self.text,)

    @property
    def width(self) -> Width:
        return self.text.width

    @property
    def most(self) -> int:
        return self.block

    @property
    def end(self) -> int:
        """The mark that closes a document."""
        return self.text.tokenizer.marks.end

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        (part,) = parts
        ids, closed = part.arrays["ids"], bool(part.arrays["closes"][0])
        return Coded({"ids": np.append(ids, self.end) if closed else ids}, {"closed": closed})

    def opened(self, coded: Coded) -> Any:
        """The ids of a text that is to go on: without the mark that closes it."""
        return coded.arrays["ids"][:-1] if coded.notes.get("closed") else coded.arrays["ids"]

    def is_empty(self, arrays: Arrays) -> bool:
        return bool((arrays["ids"] == self.end).all())

    def size(self, arrays: Arrays) -> int:
        return len(arrays["ids"])

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        ids = [arrays["ids"] for arrays in many]
        return {"ids": padded(ids), "lengths": lengths(ids)}

    def without(
        self, batch: Arrays, axis: Axis, units: Sequence[int], how: Literal["remove", "blank"]
    ) -> Arrays:
        """Whatever is asked, a token is removed: what comes after it moves up."""
        ids, n = batch["ids"], len(units)
        keep = np.arange(ids.shape[1]) != np.array(units)[:, None]
        return {
            "ids": np.repeat(ids, n, 0)[keep].reshape(n, -1),
            "lengths": np.repeat(batch["lengths"], n) - 1,
        }

    def axis(self, values: Sequence[str], coded: Coded) -> Axis:
        return ended(self.name, tuple(self.text.tokenizer.pieces(coded.arrays["ids"].tolist())))
