"""Exact retrieval: the best of a catalogue for each state, in blocks; of equal scores the lower number first.

Scores of B states with V items are never there at once, so that memory is bounded for any catalogue.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.layers.heads import HeadInput

BLOCK = 1 << 16
"""Items scored at once."""


@dataclass(frozen=True)
class Excluded:
    """Pairs of a row and an item that is not to be retrieved for it, sorted by item."""

    rows_N: Tensor
    items_N: Tensor

    def close(self, scores_BV: Tensor, first: int) -> None:
        """Sets the scores of these items to −inf, in a block that begins with item `first`."""
        bounds = torch.tensor([first, first + scores_BV.shape[1]], device=self.items_N.device)
        start, stop = torch.searchsorted(self.items_N, bounds).tolist()
        scores_BV[self.rows_N[start:stop], self.items_N[start:stop] - first] = -torch.inf


class Best(NamedTuple):
    """The k best items of each row, the best first."""

    scores_BK: Tensor
    """−inf where fewer may be retrieved."""
    items_BK: Tensor
    log_z_B1: Tensor
    """The log of the sum of exponentials of all scores, those of excluded items too."""

    @property
    def log_probs_BK(self) -> Tensor:
        return self.scores_BK - self.log_z_B1


def top_items(x: HeadInput, k: int, excluded: Excluded | None = None) -> Best:
    n_rows, k = len(x.hidden_ND), min(k, len(x.weight_VD))
    scores_BK = x.hidden_ND.new_empty(n_rows, 0)
    items_BK = torch.empty(n_rows, 0, dtype=torch.long, device=scores_BK.device)
    log_z_B1 = x.hidden_ND.new_full((n_rows, 1), -torch.inf)
    for first, block_BV in _blocks(x):
        log_z_B1 = torch.logaddexp(log_z_B1, block_BV.logsumexp(1, keepdim=True))
        if excluded is not None:
            excluded.close(block_BV, first)
        best_BK, at_BK = _best(block_BV, min(k, block_BV.shape[1]))
        scores_BK = torch.cat([scores_BK, best_BK], dim=1)  # those of lower numbers stand first
        scores_BK, order_BK = scores_BK.sort(dim=1, descending=True, stable=True)
        items_BK = torch.cat([items_BK, at_BK + first], dim=1).gather(1, order_BK)
        scores_BK, items_BK = scores_BK[:, :k], items_BK[:, :k]
    return Best(scores_BK, items_BK, log_z_B1)


def target_ranks(x: HeadInput, target_B: Tensor, excluded: Excluded | None = None) -> tuple[Tensor, Tensor]:
    """rank_B of each target among all items, from 1, and its log_prob_B among all, the excluded ones too.

    A target that is excluded, or no item of the catalogue (−1), comes after all that are.
    """
    n_items, at_B1 = len(x.weight_VD), target_B.clamp(min=0)[:, None]
    target_score_B1 = x.hidden_ND.new_empty(len(target_B), 1)
    log_z_B1 = torch.full_like(target_score_B1, -torch.inf)
    for first, block_BV in _blocks(x):
        rows = _here(at_B1, first, block_BV)
        target_score_B1[rows] = block_BV[rows].gather(1, at_B1[rows] - first)
        log_z_B1 = torch.logaddexp(log_z_B1, block_BV.logsumexp(1, keepdim=True))
    missed_B, before_B = target_B < 0, torch.zeros_like(target_B)
    for first, block_BV in _blocks(x):
        if excluded is not None:
            excluded.close(block_BV, first)
        rows = _here(at_B1, first, block_BV)
        missed_B[rows] |= block_BV[rows].gather(1, at_B1[rows] - first).squeeze(1) == -torch.inf
        number_V = torch.arange(first, first + block_BV.shape[1], device=at_B1.device)
        is_before_BV = (block_BV > target_score_B1) | ((block_BV == target_score_B1) & (number_V < at_B1))
        before_B += is_before_BV.sum(1)
    log_prob_B = (target_score_B1 - log_z_B1).squeeze(1)
    return torch.where(missed_B, n_items, before_B + 1), log_prob_B.masked_fill(target_B < 0, -torch.inf)


def _here(at_B1: Tensor, first: int, block_BV: Tensor) -> Tensor:
    """The rows whose item lies in a block."""
    return ((at_B1 >= first) & (at_B1 < first + block_BV.shape[1])).squeeze(1).nonzero().squeeze(1)


def _blocks(x: HeadInput) -> Iterator[tuple[int, Tensor]]:
    """The number of the first item of each block, and the block's scores_BV."""
    for first in range(0, len(x.weight_VD), BLOCK):
        bias_V = None if x.bias_V is None else x.bias_V[first : first + BLOCK]
        yield first, F.linear(x.hidden_ND, x.weight_VD[first : first + BLOCK], bias_V)


def _best(scores_BV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of each row and their places; `topk` alone may choose any of equal ones."""
    best_BK, at_BK = scores_BV.topk(k, dim=1)
    crowded_B = (scores_BV >= best_BK[:, -1:]).sum(1) > k
    if bool(crowded_B.any()):
        ordered, order = scores_BV[crowded_B].sort(dim=1, descending=True, stable=True)
        best_BK[crowded_B], at_BK[crowded_B] = ordered[:, :k], order[:, :k]
    at_BK, order_BK = at_BK.sort(dim=1)
    best_BK, order_BK = best_BK.gather(1, order_BK).sort(dim=1, descending=True, stable=True)
    return best_BK, at_BK.gather(1, order_BK)
