"""Losses over a catalogue: the whole softmax in slices, sampled softmax with logQ correction, gBCE.

All positions of a batch share their negatives, so that their scores are one matrix product.
"""

import math
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from regard.config import Config
from regard.layers.heads import Head, HeadInput, smoothed_cross_entropy


class SoftmaxConfig(Config):
    """Cross-entropy over the whole catalogue, in slices."""

    kind: Literal["softmax"] = "softmax"
    smoothing: float = Field(0.0, ge=0, lt=1)

    def head(self, target_N: Tensor, log_q_V: Tensor) -> Head:
        return smoothed_cross_entropy(target_N, self.smoothing)


class SampledSoftmaxConfig(Config):
    """Cross-entropy over the target and drawn negatives, corrected for how they are drawn."""

    kind: Literal["sampled_softmax"] = "sampled_softmax"
    negatives: int = Field(1024, ge=1, description="drawn for a batch, by how often items are chosen")

    def head(self, target_N: Tensor, log_q_V: Tensor) -> Head:
        log_q_V = log_q_V.to(target_N.device)
        negatives_S = torch.multinomial(log_q_V.exp(), self.negatives, replacement=True)
        return sampled_softmax(target_N, negatives_S, log_q_V)


class GBCEConfig(Config):
    """Generalised binary cross-entropy with few negatives (gSASRec)."""

    kind: Literal["gbce"] = "gbce"
    negatives: int = Field(256, ge=1, description="drawn for a batch, all items alike")
    calibration: float = Field(0.75, ge=0, le=1, description="0: plain binary cross-entropy")

    def head(self, target_N: Tensor, log_q_V: Tensor) -> Head:
        negatives_S = torch.randint(len(log_q_V), (self.negatives,), device=target_N.device)
        return gbce(target_N, negatives_S, self.calibration)


LossConfig = Annotated[SoftmaxConfig | SampledSoftmaxConfig | GBCEConfig, Field(discriminator="kind")]
"""Each gives a head for targets, where items are drawn as negatives with the probability q."""


def sampled_softmax(target_N: Tensor, negatives_S: Tensor, log_q_V: Tensor) -> Head:
    """A head for the sum of −log softmax over each target and the negatives, drawn with probability q.

    log(S q), the expected count of an item among the negatives, is subtracted from its score: so the sum of
    exponentials is right on average, and what is drawn often is not pushed down for being drawn often (Bengio
    & Senécal 2008). The target itself is always there and is not corrected (Khrylchenko et al. 2025); among
    the negatives of its own position it does not count.
    """
    log_counts_V = log_q_V + math.log(len(negatives_S))

    def head(x: HeadInput) -> Tensor:
        target_N1, negative_NS = _scores(x, target_N, negatives_S)
        negative_NS = negative_NS - log_counts_V[negatives_S]
        negative_NS = negative_NS.masked_fill(negatives_S == target_N[:, None], -torch.inf)
        return (torch.cat([target_N1, negative_NS], dim=1).logsumexp(1) - target_N1.squeeze(1)).sum()

    return head


def gbce(target_N: Tensor, negatives_S: Tensor, calibration: float) -> Head:
    """A head for the sum of the generalised binary cross-entropy (Petrov & Macdonald 2023).

    With few negatives, binary cross-entropy makes a model overconfident. σ(target) is raised to the power β,
    which takes that back wholly (calibration 1) or not at all (0, where β = 1). The negatives are uniform.
    """

    def head(x: HeadInput) -> Tensor:
        target_N1, negative_NS = _scores(x, target_N, negatives_S)
        rate = len(negatives_S) / (len(x.weight_VD) - 1)
        beta = rate * (calibration * (1 - 1 / rate) + 1 / rate)
        negative_NS = negative_NS.masked_fill(negatives_S == target_N[:, None], -torch.inf)
        positive = beta * F.softplus(-target_N1).sum()
        return (positive + F.softplus(negative_NS).sum()) / (len(negatives_S) + 1)

    return head


def _scores(x: HeadInput, target_N: Tensor, negatives_S: Tensor) -> tuple[Tensor, Tensor]:
    """score_N1 of each target, and score_NS of the negatives at each position."""
    target_N1 = (x.hidden_ND * F.embedding(target_N, x.weight_VD)).sum(1, keepdim=True)
    bias_S = None if x.bias_V is None else x.bias_V[negatives_S]
    if x.bias_V is not None:
        target_N1 = target_N1 + x.bias_V[target_N, None]
    return target_N1, F.linear(x.hidden_ND, F.embedding(negatives_S, x.weight_VD), bias_S)
