"""Conversations: a cell is a text whose turns are separated by line ends or a given mark, or a list of turns.

In JSON a conversation is a list of turns, each a string, a pair of speaker and text, or an object with a
text; elsewhere it is a text whose turns are separated by line ends or a given mark. From here on it is a text
with a turn a line. With a reply beside it, which may be one of several, it is a context; without, every turn
but the first is the reply to those before it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, StringConstraints
from pydantic import Field as Setting

from regard.errors import DataError
from regard.fields.field import Limits
from regard.fields.text import Text
from regard.files.formats import kind_of
from regard.files.lines import UNDECODED
from regard.files.row import Row

MOST_TURNS = 64
"""Of a context, so that a line of a million turns is not copied a million times."""
SAID = ("text", "utterance", "content", "value", "文本")
"""What an object calls the text of a turn."""


@dataclass(frozen=True)
class Turns(Text):
    """A conversation, from here on a text with a turn a line."""

    separator: str = "__eou__"
    kind: ClassVar[str] = "turns"
    synonyms: ClassVar[tuple[str, ...]] = (
        *("context", "history", "turns", "dialogue", "dialog", "conversation", "messages", "对话"),
    )

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


@dataclass(frozen=True)
class Replies:
    """The replies to a conversation, one a line; each may have had several turns."""

    separator: str = "__eou__"
    kind: ClassVar[str] = "replies"
    synonyms: ClassVar[tuple[str, ...]] = ("reply", "response", "responses", "references", "回复")
    suffixes: ClassVar[frozenset[str]] = frozenset()
    optional: bool = True

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> str:
        return _turns(cell, where, name, lambda text: _between(self.separator, text))


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
        said = next((turn[name] for name in SAID if name in turn), None)
        if said is None:
            raise DataError(f"{what} has no text; an object must hold one of {', '.join(SAID)}")
        turn = said
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
