"""The record of a beam search: every prefix it considered, step by step, and its fate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from regard.decode.hypothesis import Continuations, Hypothesis, normalised
from regard.decode.step import Step

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
    """A prefix: its last token with its log-probability, and the sum over all its tokens."""

    parent: int
    token: int
    log_prob: float
    total: float
    score: float
    """The score by which it would rank if it ended here."""
    step: int
    group: int
    fate: Fate
    rank: int | None = None
    """The rank of an answer, from 1."""


@dataclass
class Tree:
    """The search tree of one source. Node 0 is the empty prefix."""

    end: int
    length_penalty: float
    nodes: list[Node] = field(default_factory=lambda: [Node(0, -1, 0.0, 0.0, 0.0, 0, 0, "went on")])
    _beams: dict[int, list[int]] = field(default_factory=dict)
    """The nodes of each group's beams; before the first step all are node 0."""

    def grow(self, step: Step) -> None:
        """Adds a step of the search for one source."""
        for group, (best, unfinished) in enumerate(step.groups):
            self._grow(group, best, unfinished)
        for _, answers in step.ended:
            self._close(answers)

    def _grow(self, group: int, best: Continuations, unfinished: Continuations) -> None:
        """Adds one step of a group: the best continuations, and those that go on, one for each beam."""
        width = unfinished[0].shape[1]
        beams = self._beams.get(group, [0] * width)
        over = not any(_entries(unfinished))
        born: dict[tuple[int, int], int] = {}
        n_open = 0
        for rank, (parent, token, total) in enumerate(_entries(best)):
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
        parents, tokens, _ = (part[0].tolist() for part in unfinished)
        self._beams[group] = [born.get(pair, 0) for pair in zip(parents, tokens, strict=True)]

    def _close(self, answers: Sequence[Hypothesis]) -> None:
        """Marks finished prefixes that are among the answers."""
        ranks = {answer.ids: rank for rank, answer in enumerate(answers, 1)}
        for number, node in enumerate(self.nodes):
            if node.fate == "beaten" and (rank := ranks.get(self.ids(number))):
                node.fate, node.rank = "answer", rank

    def ids(self, number: int) -> tuple[int, ...]:
        """The tokens of a node, without the end."""
        written = []
        while number:
            written.append(self.nodes[number].token)
            number = self.nodes[number].parent
        return tuple(token for token in reversed(written) if token != self.end)


def _entries(continuations: Continuations) -> Iterator[tuple[int, int, float]]:
    """(parent, token, score) of the first source's possible continuations."""
    for parent, token, score in zip(*(part[0].tolist() for part in continuations), strict=True):
        if score > -torch.inf:
            yield parent, token, score
