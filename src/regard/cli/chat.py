"""A conversation at the terminal: what was typed and what was answered are the turns of the next question."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.tasks.task import Prediction

CHATTING = "Say something; a blank line begins a new conversation. End with Ctrl-D."


class Chat:
    def __init__(self) -> None:
        self.turns: list[str] = []

    def asking(self, lines: Iterable[str]) -> Iterator[str]:
        """The conversation up to each line that is typed."""
        for line in lines:
            self.turns = [*self.turns, line] if line.strip() else []
            yield "\n".join(self.turns)

    def hear(self, answer: "Prediction | None") -> None:
        if answer is not None and answer.text:
            self.turns.append(answer.text)
