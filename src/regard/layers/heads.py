"""The last map of a model: hidden states → vocabulary, and what is read off it.

A model's forward takes a `Head` and hands it a `HeadInput`. The default gives logits; training takes the loss
instead, which lets the loss and its gradient be computed in slices that stay in cache, and the N×V logits are
never kept.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.layers.copying import Copied


@dataclass(frozen=True)
class HeadInput:
    """All that decides what is said at N positions."""

    hidden_ND: Tensor
    weight_VD: Tensor
    bias_V: Tensor | None = None
    copied: Copied | None = None

    def at(self, places: Tensor) -> "HeadInput":
        """At these positions only."""
        copied = None if self.copied is None else self.copied.at(places)
        return replace(self, hidden_ND=self.hidden_ND[places], copied=copied)


Head = Callable[[HeadInput], Tensor]
"""Whatever the caller wants to know."""
HAS_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")


def logits(out: HeadInput) -> Tensor:
    """Where words can be copied too, log-probabilities: the two ways to a word have been added."""
    return mixed(F.linear(out.hidden_ND, out.weight_VD, out.bias_V), out.copied)


def mixed(logits_NV: Tensor, copied: Copied | None) -> Tensor:
    if copied is None:
        return logits_NV
    return copied.mixed(torch.log_softmax(logits_NV.to(copied.gate_N.dtype), dim=-1))


class OutputProjection:
    """Logits of a few rows at a time, with the same matrix over and over, as a search asks for them.

    BLAS lays a matrix out anew for every product, which takes longer than the product of a few rows. oneDNN
    can be given one that it has laid out before: that is done once a search, so that no change of the weights
    goes unseen. Elsewhere (another device or precision, gradients, a graph to export) it is a plain product.
    """

    def __init__(self, weight_VD: Tensor, bias_V: Tensor | None = None) -> None:
        self.weight_VD, self.bias_V = weight_VD, bias_V
        self._laid_out: Tensor | None = None

    def __call__(self, hidden_ND: Tensor) -> Tensor:
        if not self._can(hidden_ND):
            return F.linear(hidden_ND, self.weight_VD, self.bias_V)
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


def log_probs(target_N: Tensor) -> Head:
    """Reads the log-probability of each target; of the N×V logits only a slice is there at a time."""

    def read(out: HeadInput) -> Tensor:
        told = [-F.cross_entropy(*slice_, reduction="none") for slice_ in _slices(out, target_N)]
        told_N = torch.cat(told)
        if out.copied is None:
            return told_N
        return out.copied.log_rest_N + torch.logaddexp(told_N, out.copied.rival(target_N))

    return read


def log_probs_and_hits(target_N: Tensor) -> Head:
    """Reads two rows: the log-probability of each target, and 1 where no other is likelier."""

    def read(out: HeadInput) -> Tensor:
        assert out.copied is None, "a model that copies has other best guesses"
        told = []
        for scores, target in _slices(out, target_N):
            hit = (scores.argmax(-1) == target).float()
            told.append(torch.stack([-F.cross_entropy(scores, target, reduction="none"), hit]))
        return torch.cat(told, dim=1)

    return read


def _slices(out: HeadInput, target_N: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The vocabulary's scores of some positions at a time, and their targets."""
    height = max(1, SLICE_ELEMENTS // len(out.weight_VD))
    parts = (torch.split(whole, height) for whole in (out.hidden_ND, target_N))
    for hidden, target in zip(*parts, strict=True):
        yield F.linear(hidden, out.weight_VD, out.bias_V).float(), target


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Sums over N of the smoothed and of the plain negative log-likelihood, gradients made on the way.

    The N×V scores are passed over as seldom as can be: what is the same along a row (1/z) or for all entries
    (the uniform part of the target) is applied to the narrow factors of the products instead.

    `rival_N` is another way to each target, as a logarithm: −logaddexp(log p, rival) takes the place of
    −log p, and a target's gradient counts by the share r that the vocabulary has in it.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        rival_N: Tensor | None,
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
        d_rival = torch.empty_like(rival_N) if rival_N is not None and need[3] else None
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
            log_z_sum = log_z_sum + log_z_n1.sum()
            surprise_n1, own_n1 = log_z_n1 - told_n1, (1 - smoothing) * z_n1
            if rival_N is not None:
                rival_n1 = rival_N[start : start + height, None]
                share_n1 = torch.sigmoid(-surprise_n1 - rival_n1)
                surprise_n1 = -torch.logaddexp(-surprise_n1, rival_n1)
                if d_rival is not None:
                    d_rival[start : start + height] = (1 - smoothing) * (share_n1 - 1).squeeze(1)
                z_n1 = z_n1 / ((1 - smoothing) * share_n1 + smoothing)
                own_n1 = (1 - smoothing) * share_n1 * z_n1
            plain = plain + surprise_n1.sum()
            if not any(need):
                continue
            powers.scatter_add_(1, target_n1, -own_n1)  # now z · (p − the target's own part)
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
        ctx.save_for_backward(d_hidden, d_weight, d_bias, d_rival)
        score_sum = hidden_D @ weight_D + (0.0 if bias_V is None else n_positions * bias_V.sum())
        spread = n_vocab * log_z_sum - score_sum  # Σ over the vocabulary of −log p
        return torch.stack([(1 - smoothing) * plain + uniform * spread, plain])

    @staticmethod
    def backward(ctx: Any, grad_2: Tensor) -> tuple[Tensor | None, ...]:
        scaled = (None if saved is None else saved * grad_2[0] for saved in ctx.saved_tensors)
        return (*scaled, None, None, None, None)


def smoothed_cross_entropy(target_N: Tensor, smoothing: float) -> Head:
    """Reads two sums: the label-smoothed loss to learn from, and the plain one to report.

    Only the first has a gradient; smoothing mixes the target with the uniform distribution. Where products
    are made in less than single precision (autocast), these are too; the sums never.
    """

    def read(out: HeadInput) -> Tensor:
        learns = torch.is_grad_enabled()  # inside a Function it is always off
        weight_VD, copied, kind = out.weight_VD, out.copied, out.hidden_ND.device.type
        narrow = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight_VD.dtype
        rival_N = None if copied is None else copied.rival(target_N)
        with torch.autocast(kind, enabled=False):
            hidden_ND = out.hidden_ND.to(weight_VD.dtype)
            sums: Tensor = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
                hidden_ND, weight_VD, out.bias_V, rival_N, target_N, smoothing, learns, narrow
            )
        if copied is None:
            return sums
        rest = copied.log_rest_N.sum()
        return sums - torch.stack([(1 - smoothing) * rest, rest])

    return read
