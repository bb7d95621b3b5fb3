"""A small stepper whose every answer is known, and beam search with lists and sorting."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pytest
import torch
from torch import Tensor

from regard.decode import Hypothesis

BEGIN, END, CONTENT = 0, 1, (2, 3, 4)
MAX_LENGTH = 4

Next = Callable[[tuple[int, ...]], Sequence[float]]
"""log p(token | what was written) over the vocabulary."""


@dataclass(frozen=True)
class Place:
    source_B: Tensor
    before_B: Tensor
    """The token before the last, of each row; sources are shared by their rows."""


class Chain:
    """A random Markov chain of second order per source: mixing up rows or sources shows at once."""

    def __init__(self, n_sources: int, n_tokens: int = 5) -> None:
        self.table = torch.randn(n_sources, n_tokens, n_tokens, n_tokens) * 1.5
        self.rows_seen: list[int] = []

    def start(self) -> Place:
        n_sources = len(self.table)
        return Place(torch.arange(n_sources), torch.full((n_sources,), BEGIN))

    def step(self, last_B: Tensor, state: Place) -> tuple[Tensor, Place]:
        self.rows_seen.append(len(last_B))
        source_B = state.source_B.repeat_interleave(len(last_B) // len(state.source_B))
        return self.table[source_B, state.before_B, last_B], replace(state, before_B=last_B)

    def select(self, state: Place, rows_B: Tensor, sources_B: Tensor | None = None) -> Place:
        source_B = state.source_B if sources_B is None else state.source_B[sources_B]
        return Place(source_B, state.before_B[rows_B])

    def next(self, source: int) -> Next:
        def log_probs(written: tuple[int, ...]) -> Sequence[float]:
            before, last = (BEGIN, BEGIN, *written)[-2:]
            return self.table[source, before, last].log_softmax(-1).tolist()

        return log_probs


def rescored(found: Sequence[tuple[tuple[int, ...], float]], penalty: float) -> list[Hypothesis]:
    """Best first; Wu et al. 2016: log p / ((5 + length) / 6)^α."""
    scored = [Hypothesis(ids, p, p / ((5 + len(ids) + 1) / 6) ** penalty) for ids, p in found]
    return sorted(scored, key=lambda hypothesis: -hypothesis.score)


def all_sequences(
    next_of: Next, content: Sequence[int], end: int, penalty: float, max_length: int = MAX_LENGTH
) -> list[Hypothesis]:
    found = []
    for n in range(max_length):
        for ids in product(content, repeat=n):
            steps = [next_of(ids[:i])[token] for i, token in enumerate((*ids, end))]
            found.append((ids, sum(steps)))
    return rescored(found, penalty)


def plain_beam(next_of: Next, width: int, max_length: int, penalty: float) -> list[Hypothesis]:
    """Beam search with lists and sorting, for one source."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[Hypothesis] = []
    for length in range(1, max_length + 1):
        allowed = (END,) if length == max_length else (END, *CONTENT)
        grown = [(p + next_of(ids)[token], ids, token) for p, ids in live for token in allowed]
        best = sorted(grown, reverse=True)[: 2 * width]
        ended = [(ids, p) for p, ids, token in best[:width] if token == END]
        finished = rescored([*((h.ids, h.log_prob) for h in finished), *ended], penalty)[:width]
        live = [(p, (*ids, token)) for p, ids, token in best if token != END][:width]
        if not live:
            break
        if len(finished) == width and live[0][0] / ((5 + length + 1) / 6) ** penalty <= finished[-1].score:
            break
    return finished


def same(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> None:
    assert [hypothesis.ids for hypothesis in found] == [hypothesis.ids for hypothesis in expected]
    for got, wanted in zip(found, expected, strict=True):
        assert got.log_prob == pytest.approx(wanted.log_prob, abs=1e-4)
        assert got.score == pytest.approx(wanted.score, abs=1e-4)
        assert sum(got.steps) == pytest.approx(got.log_prob, abs=1e-4)
        assert len(got.steps) == len(got.ids) + 1
