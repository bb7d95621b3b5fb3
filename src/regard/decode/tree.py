"""The record of a beam search: every beginning it looked at, step by step, and what became of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from regard.decode.hypothesis import Continuations, Hypothesis, normalised

Fate = Literal["went on", "answer", "beaten", "outranked", "left behind", "too late"]
"""went on      among the best of its step, and so was something that continues it
answer       it ended, and is one of the answers
beaten       it ended, but better ones did too
outranked    others were better at this step
left behind  among the best of its step, but nothing that continues it was
too late     among the best of its step, when nothing could become an answer any more
"""


@dataclass
class Node:
    """A beginning: its last token and what that cost, and what all of it cost."""

    parent: int
    token: int
    log_prob: float
    total: float
    score: float
    """By which it would rank if it ended here."""
    step: int
    group: int
    fate: Fate
    rank: int | None = None
    """Of an answer, from 1."""


@dataclass
class Tree:
    """Of the search for one source. Node 0 has written nothing."""

    end: int
    length_penalty: float
    nodes: list[Node] = field(default_factory=lambda: [Node(0, -1, 0.0, 0.0, 0.0, 0, 0, "went on")])
    _beams: dict[int, list[int]] = field(default_factory=dict)
    """The nodes of each group's beams; before the first step all are node 0."""

    def grow(self, group: int, width: int, found: Continuations, going_on: Continuations) -> None:
        """One step of a group of `width` beams: what was found, and what of it goes on."""
        beams = self._beams.get(group, [0] * width)
        over = not any(_entries(going_on))
        born: dict[tuple[int, int], int] = {}
        n_open = 0
        for rank, (parent, token, total) in enumerate(_entries(found)):
            before = self.nodes[beams[parent]]
            n_open += token != self.end
            chosen = rank < width if token == self.end else n_open <= width
            fate: Fate = "outranked"
            if chosen:
                before.fate = "went on"
                fate = "beaten" if token == self.end else "too late" if over else "left behind"
            born[parent, token] = len(self.nodes)
            score = normalised(total, before.step + 1, self.length_penalty)
            self.nodes.append(
                Node(beams[parent], token, total - before.total, total, score, before.step + 1, group, fate)
            )
        parents, tokens, _ = (part[0].tolist() for part in going_on)
        self._beams[group] = [born.get(pair, 0) for pair in zip(parents, tokens, strict=True)]

    def close(self, answers: Sequence[Hypothesis]) -> None:
        """What was beaten so far is an answer if it is among the answers."""
        ranks = {answer.ids: rank for rank, answer in enumerate(answers, 1)}
        for number, node in enumerate(self.nodes):
            if node.fate == "beaten" and (rank := ranks.get(self.ids(number))):
                node.fate, node.rank = "answer", rank

    def ids(self, number: int) -> tuple[int, ...]:
        """What a node has written, without the end."""
        written = []
        while number:
            written.append(self.nodes[number].token)
            number = self.nodes[number].parent
        return tuple(token for token in reversed(written) if token != self.end)


def _entries(found: Continuations) -> Iterator[tuple[int, int, float]]:
    """Of the first source; what cannot be is left out."""
    for parent, token, score in zip(*(part[0].tolist() for part in found), strict=True):
        if score > -torch.inf:
            yield parent, token, score
