"""The last map of a model, hidden states → vocabulary, and the heads on it: logits, log-probabilities, loss.

A model's forward takes a `Head` and calls it with a `HeadInput`. The default gives logits. Training gives the
loss instead: so it can be computed with its gradient in slices (cpu/cross_entropy.py), and the N×V logits are
never kept.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.layers import cpu
from regard.layers.copying import Copied
from regard.layers.cpu.cross_entropy import fused_cross_entropy, rows_per_slice


@dataclass(frozen=True)
class HeadInput:
    """Hidden states at N positions, the output matrix, and copies from the source if the model makes any."""

    hidden_ND: Tensor
    weight_VD: Tensor
    bias_V: Tensor | None = None
    copied: Copied | None = None

    def at(self, places: Tensor) -> "HeadInput":
        """The input at these positions only."""
        copied = None if self.copied is None else self.copied.at(places)
        return replace(self, hidden_ND=self.hidden_ND[places], copied=copied)


Head = Callable[[HeadInput], Tensor]
"""A function of the last hidden states: logits, log-probabilities of targets, or a loss."""


def logits(x: HeadInput) -> Tensor:
    """Logits; with copies log-probabilities, in which both ways to a token are added."""
    return with_copies(F.linear(x.hidden_ND, x.weight_VD, x.bias_V), x.copied)


def with_copies(logits_NV: Tensor, copied: Copied | None) -> Tensor:
    """These logits, or with copies the log-probabilities of the mixture."""
    if copied is None:
        return logits_NV
    return copied.mix(torch.log_softmax(logits_NV.to(copied.gate_N.dtype), dim=-1))


def log_probs(target_N: Tensor) -> Head:
    """A head for the log-probability of each target; only a slice of the N×V logits exists at a time."""

    def head(x: HeadInput) -> Tensor:
        slices = [-F.cross_entropy(*slice_, reduction="none") for slice_ in _slices(x, target_N)]
        log_prob_N = torch.cat(slices)
        return log_prob_N if x.copied is None else x.copied.mix_target(log_prob_N, target_N)

    return head


def log_probs_and_hits(target_N: Tensor) -> Head:
    """A head for two rows: the log-probability of each target, and 1 where no other token is likelier."""

    def head(x: HeadInput) -> Tensor:
        assert x.copied is None, "a model that copies has other best guesses"
        slices = []
        for scores, target in _slices(x, target_N):
            hit = (scores.argmax(-1) == target).float()
            slices.append(torch.stack([-F.cross_entropy(scores, target, reduction="none"), hit]))
        return torch.cat(slices, dim=1)

    return head


def _slices(x: HeadInput, target_N: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The logits of some positions at a time, and their targets."""
    parts = (torch.split(whole, rows_per_slice(len(x.weight_VD))) for whole in (x.hidden_ND, target_N))
    for hidden, target in zip(*parts, strict=True):
        yield F.linear(hidden, x.weight_VD, x.bias_V).float(), target


def smoothed_cross_entropy(target_N: Tensor, smoothing: float) -> Head:
    """A head for two sums: the label-smoothed loss to learn from, and the plain one to report.

    Only the first has a gradient. Smoothing mixes the target with the uniform distribution; with copies, over
    what the vocabulary says, as not everything can be copied.
    """

    def head(x: HeadInput) -> Tensor:
        if not cpu.enabled():
            return _cross_entropy(x, target_N, smoothing)
        copied = x.copied
        log_odds_N = None if copied is None else copied.log_odds(target_N)
        sums = fused_cross_entropy(x.hidden_ND, x.weight_VD, x.bias_V, log_odds_N, target_N, smoothing)
        if copied is None:
            return sums
        rest = copied.log_rest_N.sum()
        return sums - torch.stack([(1 - smoothing) * rest, rest])

    return head


def _cross_entropy(x: HeadInput, target_N: Tensor, smoothing: float) -> Tensor:
    """The same two sums by their definition, from all N×V log-probabilities."""
    logits_NV = F.linear(x.hidden_ND, x.weight_VD, x.bias_V)
    log_prob_NV = torch.log_softmax(logits_NV.to(x.weight_VD.dtype), dim=-1)
    target_log_prob_N = log_prob_NV.gather(1, target_N[:, None]).squeeze(1)
    if x.copied is not None:
        target_log_prob_N = x.copied.mix_target(target_log_prob_N, target_N)
    plain = -target_log_prob_N.sum()
    smoothed = (1 - smoothing) * plain - smoothing * log_prob_NV.mean(-1).sum()
    return torch.stack([smoothed, plain.detach()])
