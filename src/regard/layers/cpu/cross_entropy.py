"""Label-smoothed cross-entropy over a vocabulary, with its gradient, in slices that stay in cache.

The N×V logits are never kept: each slice gives its loss and its gradients at once, in the forward pass.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

SLICE_ELEMENTS = 1 << 22
"""Logits computed at once: 16 MB of float32."""


def rows_per_slice(n_vocab: int) -> int:
    """Positions whose logits are computed at once."""
    return max(1, SLICE_ELEMENTS // n_vocab)


def fused_cross_entropy(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    log_odds_N: Tensor | None,
    target_N: Tensor,
    smoothing: float,
) -> Tensor:
    """The sums over N of the smoothed and of the plain loss; only the first has a gradient.

    Where autocast makes products in less than single precision, these are too; the sums never are.
    """
    learns = torch.is_grad_enabled()  # inside a Function it is always off
    device = hidden_ND.device.type
    narrow = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight_VD.dtype
    with torch.autocast(device, enabled=False):
        sums: Tensor = _FusedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            hidden_ND.to(weight_VD.dtype), weight_VD, bias_V, log_odds_N, target_N, smoothing, learns, narrow
        )
    return sums


class _FusedCrossEntropy(torch.autograd.Function):
    """Sums over N of the smoothed and of the plain negative log-likelihood, gradients made on the way.

    The N×V scores are passed over as seldom as can be: factors that are the same along a row (1/z) or for all
    entries (the uniform part of the target) are applied to the narrow factors of the products instead.

    `log_odds_N` is another way to each target (a copy): −logaddexp(log p, log_odds) takes the place of
    −log p, and a target's gradient counts by the vocabulary's share in that sum.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        log_odds_N: Tensor | None,
        target_N: Tensor,
        smoothing: float,
        learns: bool,
        narrow: torch.dtype,
    ) -> Tensor:
        n_positions, n_vocab = hidden_ND.shape[0], weight_VD.shape[0]
        height = rows_per_slice(n_vocab)
        need = [learns and needs for needs in ctx.needs_input_grad]
        d_hidden = torch.empty_like(hidden_ND) if need[0] else None
        d_weight = torch.zeros_like(weight_VD) if need[1] else None
        d_bias = torch.zeros_like(bias_V) if bias_V is not None and need[2] else None
        d_log_odds = torch.empty_like(log_odds_N) if log_odds_N is not None and need[3] else None
        uniform = smoothing / n_vocab
        plain = log_z_sum = hidden_ND.new_zeros(())
        factor_VD = weight_VD.to(narrow)
        for start in range(0, n_positions, height):
            hidden, target_n1 = hidden_ND[start : start + height], target_N[start : start + height, None]
            scores = F.linear(hidden.to(narrow), factor_VD, bias_V if bias_V is None else bias_V.to(narrow))
            scores = scores.to(hidden_ND.dtype)
            top_n1 = scores.amax(dim=-1, keepdim=True)
            target_score_n1 = scores.gather(1, target_n1)
            powers = scores.sub_(top_n1).exp_()
            z_n1 = powers.sum(dim=-1, keepdim=True)
            log_z_n1 = z_n1.log() + top_n1
            log_z_sum = log_z_sum + log_z_n1.sum()
            nll_n1, target_part_n1 = log_z_n1 - target_score_n1, (1 - smoothing) * z_n1
            if log_odds_N is not None:
                log_odds_n1 = log_odds_N[start : start + height, None]
                share_n1 = torch.sigmoid(-nll_n1 - log_odds_n1)
                nll_n1 = -torch.logaddexp(-nll_n1, log_odds_n1)
                if d_log_odds is not None:
                    d_log_odds[start : start + height] = (1 - smoothing) * (share_n1 - 1).squeeze(1)
                z_n1 = z_n1 / ((1 - smoothing) * share_n1 + smoothing)
                target_part_n1 = (1 - smoothing) * share_n1 * z_n1
            plain = plain + nll_n1.sum()
            if not any(need):
                continue
            powers.scatter_add_(1, target_n1, -target_part_n1)  # now z · (p − the target's own part)
            if d_hidden is not None:
                d_hidden[start : start + height] = (powers.to(narrow) @ factor_VD).div_(z_n1)
            if d_weight is not None and narrow == d_weight.dtype:
                d_weight.addmm_(powers.t(), hidden / z_n1)
            elif d_weight is not None:
                d_weight += powers.to(narrow).t() @ (hidden / z_n1).to(narrow)
            if d_bias is not None:
                d_bias.addmv_(powers.t(), 1 / z_n1.squeeze(1))
        weight_D, hidden_D = weight_VD.sum(0), hidden_ND.sum(0)
        if d_hidden is not None:
            d_hidden -= uniform * weight_D
        if d_weight is not None:
            d_weight -= uniform * hidden_D
        if d_bias is not None:
            d_bias -= uniform * n_positions
        ctx.save_for_backward(d_hidden, d_weight, d_bias, d_log_odds)
        score_sum = hidden_D @ weight_D + (0.0 if bias_V is None else n_positions * bias_V.sum())
        spread = n_vocab * log_z_sum - score_sum  # Σ over the vocabulary of −log p
        return torch.stack([(1 - smoothing) * plain + uniform * spread, plain])

    @staticmethod
    def backward(ctx: Any, grad_2: Tensor) -> tuple[Tensor | None, ...]:
        scaled = (None if saved is None else saved * grad_2[0] for saved in ctx.saved_tensors)
        return (*scaled, None, None, None, None)
