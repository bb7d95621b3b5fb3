"""Drawing the next token by its probability, out of the likeliest ones."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


class Sampler:
    """First `top_k`, then `top_p` of what is left, then `min_p`; all after the temperature.

    `seeds`, one of each source: what it draws depends on that and on nothing beside it in the batch.
    """

    def __init__(
        self,
        seeds: Sequence[Sequence[int]],
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
    ) -> None:
        self.generators = [np.random.default_rng(list(seed)) for seed in seeds]
        self.temperature, self.top_k, self.top_p, self.min_p = temperature, top_k, top_p, min_p

    def __call__(self, log_prob_BV: Tensor, sources: Sequence[int]) -> Tensor:
        """A token for each of these sources."""
        share_BV, order_BV = self.weights(log_prob_BV).sort(dim=-1, descending=True, stable=True)
        up_to_BV = share_BV.cumsum(-1)
        thrown_B1 = torch.tensor([[self.generators[source].random()] for source in sources]).to(up_to_BV)
        place_B1 = (up_to_BV <= thrown_B1 * up_to_BV[:, -1:]).sum(-1, keepdim=True)
        last_B1 = (share_BV > 0).sum(-1, keepdim=True) - 1  # rounding may leave nothing above the throw
        return order_BV.gather(1, torch.minimum(place_B1, last_B1).clamp(min=0)).squeeze(1)

    def weights(self, log_prob_BV: Tensor) -> Tensor:
        """By how much each token is drawn; they need not add up to 1."""
        share_BV, order_BV = torch.softmax(log_prob_BV.double() / self.temperature, dim=-1).sort(
            dim=-1, descending=True, stable=True
        )
        if self.top_k:
            share_BV[:, self.top_k :] = 0
        if self.top_p < 1:
            before_BV = share_BV.cumsum(-1) - share_BV
            share_BV = share_BV.masked_fill(before_BV >= self.top_p * share_BV.sum(-1, keepdim=True), 0)
        share_BV = share_BV.masked_fill(share_BV < self.min_p * share_BV[:, :1], 0)
        return torch.zeros_like(share_BV).scatter(1, order_BV, share_BV)
