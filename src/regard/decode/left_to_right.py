"""One token after another, and never back: the most_likely each time (greedy), or one that is drawn.

Finished rows leave the batch.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from regard.decode.hypothesis import Hypothesis, normalised
from regard.decode.rules import Rules
from regard.decode.sampler import Sampler
from regard.decode.step import Step
from regard.decode.stepper import S, Stepper
from regard.decode.top import top

CPU = torch.device("cpu")
Choose = Callable[[Tensor, Sequence[int]], Tensor]
"""(log_prob_BV, the sources of these rows) → the next token of each."""


def most_likely(log_prob_BV: Tensor, sources: Sequence[int]) -> Tensor:
    """The likeliest token of each row."""
    return top(log_prob_BV, 1)[1].squeeze(1)


def greedy(
    stepper: Stepper[S],
    state: S,
    rules: Rules,
    *,
    begin: int,
    length_penalty: float = 1.0,
    device: torch.device = CPU,
) -> Iterator[Step]:
    """Searches for one hypothesis per source, of the most likely token at each step."""
    return _search(stepper, state, rules, most_likely, begin, length_penalty, device)


def sample(
    stepper: Stepper[S],
    state: S,
    rules: Rules,
    *,
    sampler: Sampler,
    begin: int,
    length_penalty: float = 1.0,
    device: torch.device = CPU,
) -> Iterator[Step]:
    """Searches for one hypothesis per source, of tokens drawn by the sampler."""
    return _search(stepper, state, rules, sampler, begin, length_penalty, device)


@torch.inference_mode()
def _search(
    stepper: Stepper[S],
    state: S,
    rules: Rules,
    choose: Choose,
    begin: int,
    length_penalty: float,
    device: torch.device,
) -> Iterator[Step]:
    """Extends each hypothesis by one chosen token at a time; unwanted scores are NaN."""
    n_sources = len(rules.limits)
    steps: list[list[float]] = [[] for _ in range(n_sources)]
    running = list(range(n_sources))
    last_B = torch.full((n_sources,), begin, device=device)
    written_BT = torch.empty(n_sources, 0, dtype=torch.long, device=device)
    while running:
        logits_BV, state = stepper.step(last_B, state)
        log_prob_BV = rules.log_probs(logits_BV, written_BT, running)
        chosen_B = choose(log_prob_BV, running)
        gained_B = log_prob_BV.gather(1, chosen_B[:, None]).squeeze(1)
        chosen_B = chosen_B.masked_fill(gained_B == -torch.inf, rules.end)  # nothing may come: it ends here
        if rules.scored:
            for source, gained in zip(running, gained_B.tolist(), strict=True):
                steps[source].append(gained)
        stay_B = (chosen_B != rules.end).nonzero().squeeze(1)
        ended = [
            (running[row], [_hypothesis(written_BT[row].tolist(), steps[running[row]], length_penalty)])
            for row in (chosen_B == rules.end).nonzero().squeeze(1).tolist()
        ]
        last_B = chosen_B[stay_B]
        written_BT = torch.cat([written_BT[stay_B], last_B[:, None]], dim=1)
        if len(stay_B) < len(running):
            state = stepper.select(state, stay_B, stay_B)
            running = [running[row] for row in stay_B.tolist()]
        yield Step(ended, partial(_beginnings, running, written_BT))


def _beginnings(running: Sequence[int], written_BT: Tensor) -> dict[int, list[int]]:
    return dict(zip(running, written_BT.tolist(), strict=True))


def _hypothesis(ids: Sequence[int], steps: Sequence[float], length_penalty: float) -> Hypothesis:
    log_prob = sum(steps) if steps else math.nan
    score = normalised(log_prob, len(ids) + 1, length_penalty)
    return Hypothesis(tuple(ids), log_prob, score, tuple(steps))
