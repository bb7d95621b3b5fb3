"""Beam search: at each step the best few continuations of the best few beginnings of every source.

A source stops when it has as many finished hypotheses as beams and no live one, scored as if it ended
now, would enter them. With a beam as wide as there are sequences this is exhaustive search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.decode.hypothesis import Hypothesis, normalised
from regard.decode.stepper import S, Stepper

CPU = torch.device("cpu")
NOTHING = Hypothesis((), -torch.inf, -torch.inf)
"""What a model whose scores are not numbers has to say."""


@dataclass
class _Source:
    """The finished hypotheses of one source, best first, never more than the beam is wide."""

    max_length: int
    finished: list[Hypothesis] = field(default_factory=list)

    def add(self, hypothesis: Hypothesis, width: int) -> None:
        self.finished.append(hypothesis)
        self.finished.sort(key=lambda h: -h.score)
        del self.finished[width:]

    def done(self, best_live: float, length: int, width: int, length_penalty: float) -> bool:
        if best_live == -torch.inf or length > self.max_length:  # the second also when scores are NaN
            return True
        if len(self.finished) < width:
            return False
        return normalised(best_live, length, length_penalty) <= self.finished[-1].score


@torch.inference_mode()
def beam(
    stepper: Stepper[S],
    state: S,
    max_lengths: Sequence[int],
    *,
    width: int,
    begin: int,
    end: int,
    forbidden: Sequence[int] = (),
    length_penalty: float = 1.0,
    n_best: int = 1,
    device: torch.device = CPU,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each source, best first. `max_lengths` counts tokens with the end."""
    sources = [_Source(length) for length in max_lengths]
    running = list(range(len(sources)))
    state = stepper.select(state, torch.arange(len(sources), device=device).repeat_interleave(width))
    last_B = torch.full((len(sources) * width,), begin, device=device)
    written_BST = torch.empty(len(sources), width, 0, dtype=torch.long, device=device)
    scores_BS = torch.full((len(sources), width), -torch.inf, device=device)
    scores_BS[:, 0] = 0.0  # all beams begin alike: only one may count
    length = 0
    while running:
        length += 1
        logits_BV, state = stepper.step(last_B, state)
        log_prob_BSV = torch.log_softmax(logits_BV.float(), dim=-1).view(len(running), width, -1)
        log_prob_BSV[..., list(forbidden)] = -torch.inf
        _force_end(log_prob_BSV, [sources[i].max_length <= length for i in running], end)
        found = _best(scores_BS[..., None] + log_prob_BSV, 2 * width)
        parents_BS, tokens_BS, scores_BS = _continue(found, end, width)
        _finish(found, [sources[i] for i in running], written_BST, end, width, length_penalty)
        written_BST = torch.cat(
            [written_BST.gather(1, parents_BS[..., None].expand(-1, -1, length - 1)), tokens_BS[..., None]],
            dim=-1,
        )
        best_live = scores_BS[:, 0].tolist()
        stay = [
            row
            for row, i in enumerate(running)
            if not sources[i].done(best_live[row], length + 1, width, length_penalty)
        ]
        rows_BS = parents_BS + torch.arange(len(running), device=device)[:, None] * width
        stay_B = torch.tensor(stay, dtype=torch.long, device=device)
        state = stepper.select(state, rows_BS[stay_B].flatten(), stay_B if len(stay) < len(running) else None)
        running = [running[row] for row in stay]
        last_B, scores_BS, written_BST = tokens_BS[stay_B].flatten(), scores_BS[stay_B], written_BST[stay_B]
    return [source.finished[:n_best] or [NOTHING] for source in sources]


def _force_end(log_prob_BSV: Tensor, at_limit: Sequence[bool], end: int) -> None:
    if any(at_limit):
        rows_B = torch.tensor(at_limit, device=log_prob_BSV.device)
        end_BS = log_prob_BSV[rows_B][..., end].clone()
        log_prob_BSV[rows_B] = -torch.inf
        log_prob_BSV[rows_B, :, end] = end_BS


Found = tuple[Tensor, Tensor, Tensor]
"""parents, tokens and scores of the best continuations of each source, best first."""


def _best(total_BSV: Tensor, count: int) -> Found:
    n_vocab = total_BSV.shape[-1]
    top = total_BSV.flatten(1).topk(min(count, total_BSV[0].numel()), dim=-1)
    return top.indices // n_vocab, top.indices % n_vocab, top.values


def _continue(found: Found, end: int, width: int) -> Found:
    """The best `width` that do not end: twice as many were found, so there are enough if any exist."""
    tokens = found[1]
    rank = torch.arange(tokens.shape[1], device=tokens.device) + (tokens == end) * tokens.shape[1]
    order_BS = rank.argsort(dim=-1)[:, :width]
    parents, tokens, scores = (part.gather(1, order_BS) for part in found)
    return parents, tokens, scores.masked_fill(tokens == end, -torch.inf)


def _finish(
    found: Found, sources: Sequence[_Source], written_BST: Tensor, end: int, width: int, length_penalty: float
) -> None:
    """Those among the best `width` that end are finished."""
    parents, tokens, scores = found
    ends = (tokens[:, :width] == end) & (scores[:, :width] > -torch.inf)
    for row, place in ends.nonzero().tolist():
        ids = tuple(written_BST[row, parents[row, place]].tolist())
        log_prob = float(scores[row, place])
        sources[row].add(Hypothesis(ids, log_prob, normalised(log_prob, len(ids) + 1, length_penalty)), width)
