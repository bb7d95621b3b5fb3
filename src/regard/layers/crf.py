"""A linear-chain conditional random field (Lafferty et al. 2001) over the scores of a network.

Positions may be left out anywhere, not only at the end (sub-words that carry no tag): the chain goes over the
positions that are kept. Forbidden transitions score −∞, so nothing can be learnt around them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.layers.chain import best_path, best_paths, bounded, expected, log_partition, path_score
from regard.layers.inputs import NO_TAG


@dataclass(frozen=True)
class Allowed:
    """The tags that may begin, follow one another, and end; see `text/tags.py` for the schemes."""

    begin_C: Tensor
    step_CC: Tensor
    end_C: Tensor


@dataclass(frozen=True)
class _Chain:
    """The kept positions of every row, side by side, with everything that is added to their scores."""

    emit_BTC: Tensor
    lengths_B: Tensor
    step_CC: Tensor
    order_BT: Tensor
    """The original place of each position."""


class CRF(nn.Module):
    def __init__(self, n_tags: int, allowed: Allowed | None = None) -> None:
        super().__init__()
        self.begin_C = nn.Parameter(torch.empty(n_tags))
        self.step_CC = nn.Parameter(torch.empty(n_tags, n_tags))
        self.end_C = nn.Parameter(torch.empty(n_tags))
        self.allowed = allowed
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for weight in (self.begin_C, self.step_CC, self.end_C):
            nn.init.uniform_(weight, -0.1, 0.1)

    def forward(self, emit_BTC: Tensor, keep_BT: Tensor, tags_BT: Tensor) -> Tensor:
        """−log p of each row's tags; tags at positions left out do not matter."""
        chain = self._chain(emit_BTC, keep_BT)
        tags_BT = tags_BT.clamp(min=0).gather(1, chain.order_BT)
        gold_B = path_score(chain.emit_BTC, chain.lengths_B, chain.step_CC, tags_BT)
        return log_partition(chain.emit_BTC, chain.lengths_B, chain.step_CC) - gold_B

    @torch.no_grad()
    def best(self, emit_BTC: Tensor, keep_BT: Tensor) -> Tensor:
        """The likeliest tags_BT; NO_TAG at positions left out."""
        chain = self._chain(emit_BTC, keep_BT)
        path_BT, _ = best_path(chain.emit_BTC, chain.lengths_B, chain.step_CC)
        return torch.empty_like(path_BT).scatter_(1, chain.order_BT, path_BT).masked_fill(~keep_BT, NO_TAG)

    @torch.no_grad()
    def n_best(self, emit_BTC: Tensor, keep_BT: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """tags_BNT and their log-probabilities, the likeliest first; −∞ where there are not so many."""
        chain = self._chain(emit_BTC, keep_BT)
        paths_BNT, scores_BN = best_paths(chain.emit_BTC, chain.lengths_B, chain.step_CC, n)
        log_z_B = log_partition(chain.emit_BTC, chain.lengths_B, chain.step_CC)
        order_BNT = chain.order_BT[:, None].expand_as(paths_BNT)
        tags_BNT = torch.empty_like(paths_BNT).scatter_(2, order_BNT, paths_BNT)
        return tags_BNT.masked_fill(~keep_BT[:, None], NO_TAG), scores_BN - log_z_B[:, None]

    def marginals(self, emit_BTC: Tensor, keep_BT: Tensor) -> Tensor:
        """The probability of each tag at each position; zeros where left out."""
        chain = self._chain(emit_BTC, keep_BT)
        marginals_BTC = expected(chain.emit_BTC, chain.lengths_B, chain.step_CC).tags_BTC
        return torch.zeros_like(marginals_BTC).scatter_(
            1, chain.order_BT[..., None].expand_as(marginals_BTC), marginals_BTC
        )

    def weights(self) -> tuple[Tensor, Tensor, Tensor]:
        """The scores of beginning, of each transition and of ending; −∞ forbids."""
        if self.allowed is None:
            return self.begin_C, self.step_CC, self.end_C
        begin_C, step_CC, end_C = (
            torch.where(may.to(weight.device), weight, -torch.inf)
            for may, weight in (
                (self.allowed.begin_C, self.begin_C),
                (self.allowed.step_CC, self.step_CC),
                (self.allowed.end_C, self.end_C),
            )
        )
        return begin_C, step_CC, end_C

    def _chain(self, emit_BTC: Tensor, keep_BT: Tensor) -> _Chain:
        begin_C, step_CC, end_C = self.weights()
        order_BT = (~keep_BT).to(torch.uint8).argsort(dim=1, stable=True)
        lengths_B = keep_BT.sum(1)
        emit_BTC = emit_BTC.gather(1, order_BT[..., None].expand_as(emit_BTC))
        return _Chain(bounded(emit_BTC, lengths_B, begin_C, end_C), lengths_B, step_CC, order_BT)
