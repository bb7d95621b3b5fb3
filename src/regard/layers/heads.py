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
HAS_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")


def logits(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None) -> Tensor:
    return F.linear(hidden_ND, weight_VD, bias_V)


class Say:
    """Logits of a few rows at a time, with the same matrix over and over, as a search asks for them.

    BLAS lays a matrix out anew for every product, which takes longer than the product of a few rows. oneDNN
    can be given one that it has laid out before: that is done once a search, so that no change of the weights
    goes unseen. Elsewhere (another device or precision, gradients, a graph to be exported) it is `logits`.
    """

    def __init__(self, weight_VD: Tensor, bias_V: Tensor | None = None) -> None:
        self.weight_VD, self.bias_V = weight_VD, bias_V
        self._laid_out: Tensor | None = None

    def __call__(self, hidden_ND: Tensor) -> Tensor:
        if not self._can(hidden_ND):
            return logits(hidden_ND, self.weight_VD, self.bias_V)
        if self._laid_out is None:
            self._laid_out = torch.ops.mkldnn._reorder_linear_weight(self.weight_VD, len(hidden_ND))
        found: Tensor = torch.ops.mkldnn._linear_pointwise(
            hidden_ND, self._laid_out, self.bias_V, "none", [], ""
        )
        return found

    def _can(self, hidden_ND: Tensor) -> bool:
        return (
            hidden_ND.device.type == "cpu"
            and hidden_ND.dtype == self.weight_VD.dtype == torch.float32
            and not torch.is_grad_enabled()
            and not torch.compiler.is_compiling()
            and HAS_ONEDNN
        )


SLICE_ELEMENTS = 1 << 22
"""Logits computed at once: 16 MB of float32."""


def log_probs(target_N: Tensor) -> Read:
    """Reads the log-probability of each target; of the N×V logits only a slice is there at a time."""

    def read(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None) -> Tensor:
        height = max(1, SLICE_ELEMENTS // len(weight_VD))
        told = [
            -F.cross_entropy(logits(hidden, weight_VD, bias_V).float(), target, reduction="none")
            for hidden, target in zip(
                torch.split(hidden_ND, height), torch.split(target_N, height), strict=True
            )
        ]
        return torch.cat(told)

    return read


def log_probs_and_hits(target_N: Tensor) -> Read:
    """Reads two rows: the log-probability of each target, and 1 where no other is likelier."""

    def read(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None) -> Tensor:
        height = max(1, SLICE_ELEMENTS // len(weight_VD))
        told = []
        for hidden, target in zip(torch.split(hidden_ND, height), torch.split(target_N, height), strict=True):
            scores = logits(hidden, weight_VD, bias_V).float()
            hit = (scores.argmax(-1) == target).float()
            told.append(torch.stack([-F.cross_entropy(scores, target, reduction="none"), hit]))
        return torch.cat(told, dim=1)

    return read


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Sums over N of the smoothed and of the plain negative log-likelihood, gradients made on the way.

    The N×V scores are passed over as seldom as can be: what is the same along a row (1/z) or for all entries
    (the uniform part of the target) is applied to the narrow factors of the products instead.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_N: Tensor,
        smoothing: float,
        learns: bool,
        narrow: torch.dtype,
    ) -> Tensor:
        n_positions, n_vocab = hidden_ND.shape[0], weight_VD.shape[0]
        height = max(1, SLICE_ELEMENTS // n_vocab)
        need = [learns and needs for needs in ctx.needs_input_grad]
        d_hidden = torch.empty_like(hidden_ND) if need[0] else None
        d_weight = torch.zeros_like(weight_VD) if need[1] else None
        d_bias = torch.zeros_like(bias_V) if bias_V is not None and need[2] else None
        uniform = smoothing / n_vocab
        plain = log_z_sum = hidden_ND.new_zeros(())
        factor_VD = weight_VD.to(narrow)
        for start in range(0, n_positions, height):
            hidden, target_n1 = hidden_ND[start : start + height], target_N[start : start + height, None]
            scores = F.linear(hidden.to(narrow), factor_VD, bias_V if bias_V is None else bias_V.to(narrow))
            scores = scores.to(hidden_ND.dtype)
            top_n1 = scores.amax(dim=-1, keepdim=True)
            told_n1 = scores.gather(1, target_n1)
            powers = scores.sub_(top_n1).exp_()
            z_n1 = powers.sum(dim=-1, keepdim=True)
            log_z_n1 = z_n1.log() + top_n1
            plain = plain + (log_z_n1 - told_n1).sum()
            log_z_sum = log_z_sum + log_z_n1.sum()
            if not any(need):
                continue
            powers.scatter_add_(1, target_n1, (smoothing - 1) * z_n1)  # now z · (p − the target's own part)
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
        ctx.save_for_backward(d_hidden, d_weight, d_bias)
        score_sum = hidden_D @ weight_D + (0.0 if bias_V is None else n_positions * bias_V.sum())
        spread = n_vocab * log_z_sum - score_sum  # Σ over the vocabulary of −log p
        return torch.stack([(1 - smoothing) * plain + uniform * spread, plain])

    @staticmethod
    def backward(ctx: Any, grad_2: Tensor) -> tuple[Tensor | None, ...]:
        scaled = (None if saved is None else saved * grad_2[0] for saved in ctx.saved_tensors)
        return (*scaled, None, None, None, None)


def smoothed_cross_entropy(target_N: Tensor, smoothing: float) -> Read:
    """Reads two sums: the label-smoothed loss to learn from, and the plain one to report.

    Only the first has a gradient; smoothing mixes the target with the uniform distribution. Where products
    are made in less than single precision (autocast), these are too; the sums never.
    """

    def read(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None) -> Tensor:
        learns = torch.is_grad_enabled()  # inside a Function it is always off
        kind = hidden_ND.device.type
        narrow = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight_VD.dtype
        with torch.autocast(kind, enabled=False):
            sums: Tensor = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
                hidden_ND.to(weight_VD.dtype), weight_VD, bias_V, target_N, smoothing, learns, narrow
            )
        return sums

    return read
