"""Greedy search: at each step the likeliest token. Finished rows leave the batch."""

from collections.abc import Sequence

import torch

from regard.decode.hypothesis import Hypothesis, normalised
from regard.decode.stepper import S, Stepper

CPU = torch.device("cpu")


@torch.inference_mode()
def greedy(
    stepper: Stepper[S],
    state: S,
    max_lengths: Sequence[int],
    *,
    begin: int,
    end: int,
    forbidden: Sequence[int] = (),
    length_penalty: float = 1.0,
    device: torch.device = CPU,
) -> list[Hypothesis]:
    """One hypothesis per source. `max_lengths` counts tokens with the end; at the last the end is forced."""
    n_sources = len(max_lengths)
    ids: list[list[int]] = [[] for _ in range(n_sources)]
    log_probs = [0.0] * n_sources
    running = list(range(n_sources))
    last_B = torch.full((n_sources,), begin, device=device)
    while running:
        logits_BV, state = stepper.step(last_B, state)
        log_prob_BV = torch.log_softmax(logits_BV.float(), dim=-1)
        log_prob_BV[:, list(forbidden)] = -torch.inf
        best_B = log_prob_BV.max(dim=-1)
        chosen, gained = best_B.indices.tolist(), best_B.values.tolist()
        stay = []
        for row, source in enumerate(running):
            if len(ids[source]) + 1 >= max_lengths[source]:
                chosen[row], gained[row] = end, float(log_prob_BV[row, end])
            log_probs[source] += gained[row]
            if chosen[row] != end:
                ids[source].append(chosen[row])
                stay.append(row)
        last_B = torch.tensor([chosen[row] for row in stay], dtype=torch.long, device=device)
        if len(stay) < len(running):
            rows_B = torch.tensor(stay, dtype=torch.long, device=device)
            state = stepper.select(state, rows_B, rows_B)
            running = [running[row] for row in stay]
    return [
        Hypothesis(tuple(tokens), log_prob, normalised(log_prob, len(tokens) + 1, length_penalty))
        for tokens, log_prob in zip(ids, log_probs, strict=True)
    ]
