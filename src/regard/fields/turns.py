"""Conversations: a cell is a text whose turns are separated by line ends or a given mark, or a list of turns.

In JSON a conversation is a list of turns, each a string, a pair of speaker and text, or an object with a
text; elsewhere it is a text whose turns are separated by line ends or a given mark. From here on it is a text
with a turn a line. With a reply beside it, which may be one of several, it is a context; without, every turn
but the first is the reply to those before it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, StringConstraints
from pydantic import Field as Setting

from regard.errors import DataError
from regard.fields.axis import Axis, ended
from regard.fields.field import Arrays, Coded, Limits
from regard.fields.joined import Joined
from regard.fields.padding import lengths
from regard.fields.text import Text
from regard.files.formats import kind_of
from regard.files.lines import UNDECODED
from regard.files.row import Row

MOST_TURNS = 64
"""Turns of a context, so that a line of a million turns is not copied a million times."""
TEXT_KEYS = ("text", "utterance", "content", "value", "文本")
"""Names that the text of a turn may have in an object."""


@dataclass(frozen=True)
class JoinedTurns(Joined):
    """Turns with an end mark after each; of a long conversation the end is read, which is answered."""

    def framed(self, arrays: Arrays) -> list[int]:
        """The ids of all turns, each closed by the mark; the mark alone where there are none."""
        tokenizer = self.fields[0].tokenizer
        turns = np.split(arrays["ids"], np.cumsum(arrays["turn_lengths"])[:-1])
        return tokenizer.with_special_tokens(*(turn.tolist() for turn in turns))

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        (part,) = parts
        ids = self.framed(part.arrays)
        return Coded({"ids": np.array(ids[-self.most :])}, {"cut": len(ids) > self.most})

    def axis(self, values: Sequence[Sequence[str]], coded: Coded) -> Axis:
        (turns,), tokenizer = values, self.fields[0].tokenizer
        end = tokenizer.tokens([tokenizer.special.end])
        words = [word for turn in turns for word in (*tokenizer.token_texts(turn, 4 * len(turn) + 1), *end)]
        return ended(self.name, tuple(words or end)[-len(coded.arrays["ids"]) :])


@dataclass(frozen=True)
class Turns(Text):
    """A conversation: a cell is a text with a turn a line, a value the list of the last turns."""

    separator: str = "__eou__"
    n_read: int = MOST_TURNS
    """Last turns that are read."""
    kind: ClassVar[str] = "turns"

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> str:
        return _turns(cell, where, name, lambda text: split(text, self.separator))

    def request(self, limits: Limits) -> Any:
        """A text with a turn a line, or a list of turns."""
        turn = Annotated[str, StringConstraints(min_length=1, max_length=limits.characters)]

        def bounded(turns: list[str]) -> list[str]:
            if self.cost(turns) > limits.characters:
                raise ValueError(f"turns may have {limits.characters} characters together; drop the oldest")
            return turns

        most = Setting(min_length=1, max_length=limits.characters)
        return super().request(limits) | Annotated[list[turn], most, AfterValidator(bounded)]

    def cost(self, cell: Any) -> int:
        return len(cell) if isinstance(cell, str) else sum(map(len, cell))

    def parse(self, cell: str, where: str) -> Any:
        return split(cell, self.separator)[-self.n_read :]

    def encode(self, values: Sequence[Any]) -> list[Coded]:
        """Arrays: the `ids` of all turns, one after another, and the `turn_lengths`."""
        ids = iter(self.tokenizer.ids([turn for turns in values for turn in turns]))
        return [_coded_turns([next(ids) for _ in turns]) for turns in values]

    def alone(self, limit: int) -> JoinedTurns:
        return JoinedTurns((self,), limit)


@dataclass(frozen=True)
class Replies(Text):
    """The replies to a conversation, one a line; each may have had several turns."""

    separator: str = "__eou__"
    kind: ClassVar[str] = "replies"
    optional: bool = True

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> str:
        return _turns(cell, where, name, lambda text: _between(self.separator, text))


def _coded_turns(turns: Sequence[list[int]]) -> Coded:
    ids = np.array([token for turn in turns for token in turn], np.int64)
    return Coded({"ids": ids, "turn_lengths": lengths(turns)})


def split(text: str, separator: str) -> list[str]:
    """The turns of a text; blank ones are none."""
    return [turn for line in text.splitlines() for turn in _between(separator, line)]


def _between(separator: str, text: str) -> list[str]:
    return [turn for part in text.split(separator) if (turn := " ".join(part.split()))]


def _turns(cell: object, where: str, name: str, cut: Callable[[str], list[str]]) -> str:
    if isinstance(cell, str):
        return "\n".join(cut(_text(f"{where}: {name}", cell)))
    if not isinstance(cell, list):
        raise DataError(f"{where}: {name} is {kind_of(cell)}; it must be a text, or a list of turns")
    turns = (_turn(f"{where}: turn {number} of {name}", turn) for number, turn in enumerate(cell, 1))
    return "\n".join(turn for turn in turns if turn)


def _turn(what: str, turn: object) -> str:
    if isinstance(turn, dict):
        text = next((turn[name] for name in TEXT_KEYS if name in turn), None)
        if text is None:
            raise DataError(f"{what} has no text; an object must hold one of {', '.join(TEXT_KEYS)}")
        turn = text
    elif isinstance(turn, list) and len(turn) == 2:  # speaker and text
        turn = turn[1]
    if not isinstance(turn, str):
        raise DataError(
            f"{what} is {kind_of(turn)}; it must be a text, [speaker, text] or an object with a text"
        )
    return " ".join(_text(what, turn).split())


def _text(what: str, text: str) -> str:
    if "\0" in text or UNDECODED.search(text):
        raise DataError(f"{what} holds an escaped NUL or half of a surrogate pair, which is no text")
    return text


def exchanges(row: Row) -> Iterator[Row]:
    """Rows of a context and a reply each; the first reply of several to a context has all as `references`.

    Without replies beside it, every turn of a conversation but the first is the reply to those before it.
    """
    turns = row.cells["context"].split("\n")
    if "reply" in row.cells:
        replies = row.cells["reply"]
        context = "\n".join(turns[-MOST_TURNS:])
        for number, reply in enumerate(replies.split("\n")):
            references = "" if number else replies
            yield replace(row, cells={"context": context, "reply": reply, "references": references})
        return
    if len(turns) < 2:
        raise DataError(f"{row.where}: a conversation of one turn has no reply; it must have at least two")
    for at in range(1, len(turns)):
        context = "\n".join(turns[max(0, at - MOST_TURNS) : at])
        yield replace(row, cells={"context": context, "reply": turns[at], "references": turns[at]})
