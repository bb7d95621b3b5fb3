"""A conversation at the terminal: what was typed and what was answered are the turns of the next question."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.files.row import Row
    from regard.tasks.task import Prediction

CHATTING = "Say something; a blank line begins a new conversation. End with Ctrl-D."


class Chat:
    def __init__(self) -> None:
        self.turns: list[str] = []

    def asking(self, rows: "Iterable[Row]") -> "Iterator[Row]":
        """The conversation up to each line that is typed."""
        for row in rows:
            ((name, line),) = row.cells.items()
            self.turns = [*self.turns, line] if line.strip() else []
            yield replace(row, cells={name: "\n".join(self.turns)})

    def hear(self, answer: "Prediction | None") -> None:
        if answer is not None and answer.text:
            self.turns.append(answer.text)
