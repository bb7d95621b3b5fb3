"""The last map of a model: hidden states → vocabulary, and what is read off it.

A model's forward takes a `Read` and hands it the real positions and the output matrix. The default gives
logits; training reads the loss instead, which lets the loss and its gradient be computed in slices that
stay in cache, and the N×V logits are never kept.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

Read = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""(hidden_ND, weight_VD, bias_V) → whatever the caller wants to know."""


def logits(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None) -> Tensor:
    return F.linear(hidden_ND, weight_VD, bias_V)


SLICE_ELEMENTS = 1 << 21
"""Logits computed at once: 8 MB of float32."""


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Sums over N of the smoothed and of the plain negative log-likelihood, gradients made on the way."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_N: Tensor,
        smoothing: float,
        learns: bool,
    ) -> Tensor:
        n_vocab = weight_VD.shape[0]
        height = max(1, SLICE_ELEMENTS // n_vocab)
        need = [learns and needs for needs in ctx.needs_input_grad]
        d_hidden = torch.empty_like(hidden_ND) if need[0] else None
        d_weight = torch.zeros_like(weight_VD) if need[1] else None
        d_bias = torch.zeros_like(bias_V) if bias_V is not None and need[2] else None
        sums = hidden_ND.new_zeros(2)
        for start in range(0, hidden_ND.shape[0], height):
            hidden, target_n1 = hidden_ND[start : start + height], target_N[start : start + height, None]
            scores = F.linear(hidden, weight_VD, bias_V)
            log_z = scores.logsumexp(dim=-1, keepdim=True)
            plain = (log_z - scores.gather(1, target_n1)).sum()
            spread = (log_z * n_vocab).sum() - scores.sum()  # Σ over the vocabulary of −log p
            sums[0] += (1 - smoothing) * plain + smoothing / n_vocab * spread
            sums[1] += plain
            if not any(need):
                continue
            d_scores = scores.sub_(log_z).exp_().sub_(smoothing / n_vocab)
            d_scores.scatter_add_(1, target_n1, d_scores.new_full(target_n1.shape, smoothing - 1))
            if d_hidden is not None:
                torch.mm(d_scores, weight_VD, out=d_hidden[start : start + height])
            if d_weight is not None:
                d_weight.addmm_(d_scores.t(), hidden)
            if d_bias is not None:
                d_bias += d_scores.sum(0)
        ctx.save_for_backward(d_hidden, d_weight, d_bias)
        return sums

    @staticmethod
    def backward(ctx: Any, grad_2: Tensor) -> tuple[Tensor | None, ...]:
        scaled = (None if saved is None else saved * grad_2[0] for saved in ctx.saved_tensors)
        return (*scaled, None, None, None)


def smoothed_cross_entropy(target_N: Tensor, smoothing: float) -> Read:
    """Reads two sums: the label-smoothed loss to learn from, and the plain one to report.

    Only the first has a gradient; smoothing mixes the target with the uniform distribution.
    """

    def read(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None) -> Tensor:
        learns = torch.is_grad_enabled()  # inside a Function it is always off
        sums: Tensor = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            hidden_ND, weight_VD, bias_V, target_N, smoothing, learns
        )
        return sums

    return read
