"""Beam search: at each step the best few continuations of the best few prefixes of every source.

Diverse beam search splits the beam into groups (Vijayakumar et al. 2016): each searches for itself, but a
token is penalised by the number of earlier groups that have just chosen it and go on. Scores stay the model's
own; only the choice is changed.

A group stops when it has as many finished hypotheses as beams and no live one, scored as if it ended now,
would enter them. With a beam as wide as there are sequences this is exhaustive search.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest

import torch
from torch import Tensor

from regard.decode.hypothesis import Continuations, Hypothesis, normalised
from regard.decode.required import Required
from regard.decode.rules import Rules
from regard.decode.step import Step
from regard.decode.stepper import S, Stepper
from regard.decode.top import top

CPU = torch.device("cpu")
NOTHING = Hypothesis((), -torch.inf, -torch.inf)
"""The answer of a model whose scores are NaN."""


@dataclass
class _Finished:
    """The finished hypotheses of one group of one source, best first, never more than it is wide."""

    width: int
    limit: int
    length_penalty: float
    best: list[Hypothesis] = field(default_factory=list)

    def add(self, ids: tuple[int, ...], steps: tuple[float, ...], log_prob: float) -> None:
        score = normalised(log_prob, len(ids) + 1, self.length_penalty)
        self.best.append(Hypothesis(ids, log_prob, score, steps))
        self.best.sort(key=lambda hypothesis: -hypothesis.score)
        del self.best[self.width :]

    def done(self, best_live: float, length: int) -> bool:
        """True if nothing of this length or longer can enter."""
        if best_live == -torch.inf or length > self.limit:  # the second also when scores are NaN
            return True
        if len(self.best) < self.width:
            return False
        return normalised(best_live, length, self.length_penalty) <= self.best[-1].score


@torch.inference_mode()
def beam(
    stepper: Stepper[S],
    state: S,
    rules: Rules,
    *,
    begin: int,
    width: int,
    groups: int = 1,
    diversity: float = 0.0,
    length_penalty: float = 1.0,
    n_best: int = 1,
    device: torch.device = CPU,
) -> Iterator[Step]:
    """Searches for the `n_best` hypotheses of each source. `width` counts the beams of all groups."""
    n_sources, each = len(rules.limits), width // groups
    finished = [[_Finished(each, limit, length_penalty) for _ in range(groups)] for limit in rules.limits]
    running = list(range(n_sources))
    state = stepper.select(state, torch.arange(n_sources, device=device).repeat_interleave(width))
    last_N = torch.full((n_sources * width,), begin, device=device)
    live = _Live(
        torch.empty(n_sources, width, 0, dtype=torch.long, device=device),
        torch.empty(n_sources, width, 0, device=device),
        torch.full((n_sources, width), -torch.inf, device=device),
    )
    live.scores_BS[:, ::each] = 0.0  # all beams of a group begin alike: only one may count
    length = 0
    while running:
        length += 1
        logits_NV, state = stepper.step(last_N, state)
        log_prob_NV = rules.log_probs(logits_NV, live.written_BST.flatten(0, 1), running)
        log_prob_BSV = log_prob_NV.view(len(running), width, -1)
        taken_BV = torch.zeros_like(log_prob_BSV[:, 0]) if groups > 1 else None
        chosen: list[Continuations] = []
        taken: list[tuple[Continuations, Continuations]] = []
        for group in range(groups):
            beams = slice(group * each, (group + 1) * each)
            beam_group = live.group(beams, log_prob_BSV)
            best = beam_group.best(2 * each, rules, None if taken_BV is None else diversity * taken_BV)
            lanes = [finished[source][group] for source in running]
            _finish(best, lanes, beam_group, rules)
            unfinished = _continue(best, lanes, rules.end, length + 1)
            taken.append((best, unfinished))
            parents_BS, tokens_BS, scores_BS = unfinished
            if taken_BV is not None:
                taken_BV.scatter_add_(1, tokens_BS, (scores_BS > -torch.inf).to(taken_BV.dtype))
            chosen.append((parents_BS + group * each, tokens_BS, scores_BS))
        parents_BS, tokens_BS, scores_BS = (torch.cat(parts, dim=1) for parts in zip(*chosen, strict=True))
        live = live.grown(parents_BS, tokens_BS, scores_BS, log_prob_BSV)
        stay_B = (scores_BS != -torch.inf).any(dim=1).nonzero().squeeze(1)
        rows_BS = parents_BS + torch.arange(len(running), device=device)[:, None] * width
        left = None if len(stay_B) == len(running) else stay_B
        state = stepper.select(state, rows_BS[stay_B].flatten(), left)
        staying = [running[row] for row in stay_B.tolist()]
        ended = [
            (source, _ranked(finished[source])[:n_best] or [NOTHING])
            for source in sorted({*running} - {*staying})
        ]
        running = staying
        live = live.rows(stay_B)
        last_N = tokens_BS[stay_B].flatten()
        yield Step(ended, partial(_beginnings, live, running, finished), taken)


@dataclass(frozen=True)
class _Live:
    """Unfinished hypotheses: their tokens, the log-probability of each, and the sum."""

    written_BST: Tensor
    steps_BST: Tensor
    scores_BS: Tensor

    def group(self, beams: slice, log_prob_BSV: Tensor) -> "_Group":
        live = _Live(self.written_BST[:, beams], self.steps_BST[:, beams], self.scores_BS[:, beams])
        return _Group(live, log_prob_BSV[:, beams])

    def rows(self, rows_B: Tensor) -> "_Live":
        return _Live(self.written_BST[rows_B], self.steps_BST[rows_B], self.scores_BS[rows_B])

    def grown(
        self, parents_BS: Tensor, tokens_BS: Tensor, scores_BS: Tensor, log_prob_BSV: Tensor
    ) -> "_Live":
        before = parents_BS[..., None].expand(-1, -1, self.written_BST.shape[2])
        cost_BS = _costs(log_prob_BSV, parents_BS, tokens_BS)
        return _Live(
            torch.cat([self.written_BST.gather(1, before), tokens_BS[..., None]], dim=-1),
            torch.cat([self.steps_BST.gather(1, before), cost_BS[..., None]], dim=-1),
            scores_BS,
        )


@dataclass(frozen=True)
class _Group:
    """The hypotheses of one group, and the log-probabilities of their next tokens."""

    live: _Live
    log_prob_BSV: Tensor

    def best(self, count: int, rules: Rules, penalty_BV: Tensor | None) -> Continuations:
        scores_BS, log_prob_BSV = self.live.scores_BS, self.log_prob_BSV
        if rules.must_include is not None:
            total_BSV = scores_BS[..., None] + log_prob_BSV
            return _by_bank(total_BSV, self.live.written_BST, rules.must_include, rules.end, count)
        return _best(scores_BS, log_prob_BSV, count, penalty_BV)


def _costs(log_prob_BSV: Tensor, parents_BS: Tensor, tokens_BS: Tensor) -> Tensor:
    """The log-probabilities of these tokens after these parents."""
    n_vocab = log_prob_BSV.shape[-1]
    return log_prob_BSV.flatten(1).gather(1, parents_BS * n_vocab + tokens_BS)


def _best(scores_BS: Tensor, log_prob_BSV: Tensor, count: int, penalty_BV: Tensor | None) -> Continuations:
    """The best of each beam's best continuations, so that only few sums are made."""
    n_beams, n_vocab = log_prob_BSV.shape[1:]
    penalised_BSV = log_prob_BSV if penalty_BV is None else log_prob_BSV - penalty_BV[:, None]
    values_NC, tokens_NC = top(penalised_BSV.flatten(0, 1), min(count, n_vocab))
    penalised_BP = (scores_BS[..., None] + values_NC.view(-1, n_beams, values_NC.shape[1])).flatten(1)
    places = penalised_BP.topk(min(count, n_beams * n_vocab), dim=-1).indices
    parents = places // tokens_NC.shape[1]
    tokens = tokens_NC.view(len(places), -1).gather(1, places)
    return parents, tokens, scores_BS.gather(1, parents) + _costs(log_prob_BSV, parents, tokens)


def _by_bank(
    total_BSV: Tensor, written_BST: Tensor, required: Required, end: int, count: int
) -> Continuations:
    """The best continuations of every bank in turn, the one with the fewest required tokens left first.

    Dynamic beam allocation (Post and Vilar 2018): left to itself a beam fills with easy continuations and
    writes the required phrases at the last moment.
    """
    n_vocab = total_BSV.shape[2]
    remaining = required.remaining(written_BST.flatten(0, 1))
    places_BC, scores_BC = [], []
    for total_P, needed_P, onward_P in zip(
        total_BSV.flatten(1),
        remaining.needed_after_NV.view_as(total_BSV).flatten(1),
        remaining.onward_NV.view_as(total_BSV).flatten(1),
        strict=True,
    ):
        top = total_P.topk(min(count, total_P.numel())).indices.tolist()
        places = {*top, *onward_P.nonzero().squeeze(1).tolist()}
        entries = sorted(((float(total_P[place]), place) for place in places), reverse=True)
        banks: dict[int, list[tuple[float, int]]] = {}
        for score, place in entries:
            if score > -torch.inf:
                still = int(needed_P[place]) if place % n_vocab != end else 0
                banks.setdefault(still, []).append((score, place))
        turns = zip_longest(*(banks[still] for still in sorted(banks)))
        picked = [entry for turn in turns for entry in turn if entry is not None][:count]
        picked += [(-torch.inf, 0)] * (count - len(picked))
        scores_BC.append([score for score, _ in picked])
        places_BC.append([place for _, place in picked])
    picked_BC = torch.tensor(places_BC, device=total_BSV.device)
    return picked_BC // n_vocab, picked_BC % n_vocab, torch.tensor(scores_BC).to(total_BSV)


def _continue(best: Continuations, lanes: Sequence[_Finished], end: int, length: int) -> Continuations:
    """The best continuations that do not end; none in a group that is done.

    `best` has twice as many as there are beams, so there are enough if any exist.
    """
    tokens = best[1]
    rank = torch.arange(tokens.shape[1], device=tokens.device) + (tokens == end) * tokens.shape[1]
    order_BS = rank.argsort(dim=-1)[:, : lanes[0].width]
    parents, tokens, scores = (part.gather(1, order_BS) for part in best)
    scores = scores.masked_fill(tokens == end, -torch.inf)
    top = scores.amax(dim=-1).tolist()
    over_B1 = torch.tensor([[lane.done(live, length)] for lane, live in zip(lanes, top, strict=True)])
    return parents, tokens, scores.masked_fill(over_B1.to(scores.device), -torch.inf)


def _finish(best: Continuations, lanes: Sequence[_Finished], group: _Group, rules: Rules) -> None:
    """Adds the continuations that end to the finished ones; `best` has twice as many as may count."""
    parents, tokens, scores = best
    width, end = lanes[0].width, rules.end
    ends = (tokens[:, :width] == end) & (scores[:, :width] > -torch.inf)
    for row, place in ends.nonzero().tolist():
        parent = int(parents[row, place])
        ids = tuple(group.live.written_BST[row, parent].tolist())
        if rules.must_include is not None and not rules.must_include.is_kept_by(ids):
            continue
        steps = (*group.live.steps_BST[row, parent].tolist(), float(group.log_prob_BSV[row, parent, end]))
        lanes[row].add(ids, steps, float(scores[row, place]))


def _beginnings(
    live: _Live, running: Sequence[int], finished: Sequence[Sequence[_Finished]]
) -> dict[int, list[int]]:
    return {source: _certain(live, row, finished[source]) for row, source in enumerate(running)}


def _certain(live: _Live, row: int, lanes: Sequence[_Finished]) -> list[int]:
    """The common prefix of all that can still be the answer."""
    possible: list[list[int]] = live.written_BST[row][live.scores_BS[row] > -torch.inf].tolist()
    possible += [list(hypothesis.ids) for hypothesis in _ranked(lanes)[:1]]
    if not possible:  # scores that are not numbers
        return []
    first, *others = possible
    shared = range(min(map(len, (first, *others))))
    return first[: next((n for n in shared if any(other[n] != first[n] for other in others)), len(shared))]


def _ranked(lanes: Sequence[_Finished]) -> list[Hypothesis]:
    """The best of every group before any group's second, each answer once; of equals the better first."""
    ranked = [(rank, -best.score, best) for lane in lanes for rank, best in enumerate(lane.best)]
    unique: dict[tuple[int, ...], Hypothesis] = {}
    for *_, hypothesis in sorted(ranked, key=lambda entry: entry[:2]):
        unique.setdefault(hypothesis.ids, hypothesis)
    return list(unique.values())
