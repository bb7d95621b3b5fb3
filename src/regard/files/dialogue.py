"""Conversations → rows of a context and its reply.

In JSON a conversation is a list of turns, each a string, a pair of speaker and text, or an object with a
text; elsewhere it is a text whose turns are separated by line ends or a given mark. From here on it is a text
with a turn a line. With a reply beside it, which may be one of several, it is a context; without, every turn
but the first is the reply to those before it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from regard.errors import DataError
from regard.files.formats import kind_of
from regard.files.lines import UNDECODED, Refuse

MOST_TURNS = 64
"""Of a context, so that a line of a million turns is not copied a million times."""
SAID = ("text", "utterance", "content", "value", "文本")
"""What an object calls the text of a turn."""


@dataclass(frozen=True)
class Turns:
    """How conversations stand in a file."""

    separator: str = "__eou__"


def split(text: str, separator: str) -> list[str]:
    """The turns of a text; blank ones are none."""
    return [turn for line in text.splitlines() for turn in _between(separator, line)]


def _between(separator: str, text: str) -> list[str]:
    return [turn for part in text.split(separator) if (turn := " ".join(part.split()))]


def told(where: str, name: str, value: object, separator: str, *, is_reply: bool = False) -> str:
    """A conversation, or the replies to one, with a turn a line; a reply itself may have had several."""
    if isinstance(value, str):
        text = _text(f"{where}: {name}", value)
        return "\n".join(_between(separator, text) if is_reply else split(text, separator))
    if not isinstance(value, list):
        raise DataError(f"{where}: {name} is {kind_of(value)}; it must be a text, or a list of turns")
    turns = (_turn(f"{where}: turn {number} of {name}", turn) for number, turn in enumerate(value, 1))
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


def exchanges(fields: dict[str, str], where: str, refuse: Refuse) -> Iterator[dict[str, str]]:
    """A context and a reply for each reply; the first of several that fit has them all as `references`."""
    turns = fields["context"].split("\n")
    if "reply" in fields:
        replies = fields["reply"]
        context = "\n".join(turns[-MOST_TURNS:])
        for number, reply in enumerate(replies.split("\n")):
            yield {"context": context, "reply": reply, "references": "" if number else replies}
        return
    if len(turns) < 2:
        refuse(DataError(f"{where}: a conversation of one turn has no reply; it must have at least two"))
        return
    for at in range(1, len(turns)):
        context = "\n".join(turns[max(0, at - MOST_TURNS) : at])
        yield {"context": context, "reply": turns[at], "references": turns[at]}
