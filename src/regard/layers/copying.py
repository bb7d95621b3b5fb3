"""Copying from the source, beside generating from the vocabulary (Gu et al. 2016; See et al. 2017).

    p(token) = (1 − g) · p_vocabulary(token) + g · Σ of the weights of the positions where the token stands

An attention head of its own goes from the decoder's last states to the encoder's, and the gate g is computed
from the same states. So names that are too rare to be learnt can be written. Source and target must have one
vocabulary. The last token of a source, its end mark, is not copied: the vocabulary says when to end. Where it
is alone, g is 0.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Attention, Static, padding
from regard.layers.inputs import Encoded
from regard.linear import Linear


@dataclass(frozen=True)
class Copyable:
    """Sources to copy from: keys and tokens of their positions."""

    k_BGKE: Tensor
    tokens_BK: Tensor
    lengths_B: Tensor

    def select(self, sources_B: Tensor) -> "Copyable":
        return Copyable(self.k_BGKE[sources_B], self.tokens_BK[sources_B], self.lengths_B[sources_B])


@dataclass(frozen=True)
class Copied:
    """The copy distribution of each target position: gate, weights over the source, the source's tokens."""

    gate_N: Tensor
    """Log-odds of copying."""
    weights_NK: Tensor
    tokens_NK: Tensor

    def at(self, places: Tensor) -> "Copied":
        return Copied(self.gate_N[places], self.weights_NK[places], self.tokens_NK[places])

    @property
    def log_rest_N(self) -> Tensor:
        """log (1 − g), the share of the vocabulary."""
        return F.logsigmoid(-self.gate_N)

    def log_odds(self, target_N: Tensor) -> Tensor:
        """log of g / (1 − g) · p_copy(target)."""
        copied_N = (self.weights_NK * (self.tokens_NK == target_N[:, None])).sum(-1)
        return self.gate_N + _log(copied_N)

    def mix_target(self, log_prob_N: Tensor, target_N: Tensor) -> Tensor:
        """log p of the targets, from their log-probabilities by the vocabulary."""
        return self.log_rest_N + torch.logaddexp(log_prob_N, self.log_odds(target_N))

    def mix(self, log_prob_NV: Tensor) -> Tensor:
        """log p of every token, from the log-probabilities by the vocabulary."""
        copied_NV = torch.zeros_like(log_prob_NV).scatter_add(1, self.tokens_NK, self.weights_NK)
        log_odds_NV = self.gate_N[:, None] + _log(copied_NV)
        return self.log_rest_N[:, None] + torch.logaddexp(log_prob_NV, log_odds_NV)


class Copying(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.look = Attention(d_model, project="qk", bias=False)
        self.gate = Linear(d_model, 1)

    def project_source(self, encoded: Encoded, tokens_BK: Tensor) -> Copyable:
        """The keys of a source, to copy from now and later."""
        keys = self.look.project_kv(encoded.states_RTD, unpadded=encoded.unpadded)
        return Copyable(keys.k_BGKE, tokens_BK, encoded.lengths_R)

    def forward(self, hidden_BTD: Tensor, source: Copyable) -> Copied:
        """The copies of every position, row after row; a source's beams are rows of one position each."""
        rows, length, _ = hidden_BTD.shape
        n_sources, n_keys = source.tokens_BK.shape
        # with one-hot values the output of attention is its weights
        one_hot_B1KK = torch.eye(n_keys, dtype=source.k_BGKE.dtype, device=source.k_BGKE.device).expand(
            n_sources, 1, n_keys, n_keys
        )
        positions = Static(source.k_BGKE, one_hot_B1KK)
        weights_BTK = self.look(hidden_BTD, positions, mask=padding(source.lengths_B - 1))
        each = rows // n_sources * length
        tokens_NK = source.tokens_BK.repeat_interleave(each, dim=0)
        empty_N = (source.lengths_B == 1).repeat_interleave(each)
        gate_N = _wide(self.gate(hidden_BTD).flatten()).masked_fill(empty_N, -torch.inf)
        return Copied(gate_N, _wide(weights_BTK.flatten(0, 1)), tokens_NK)


def _wide(x: Tensor) -> Tensor:
    """Casts to single precision at least, in which probabilities are added."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _log(prob: Tensor) -> Tensor:
    """The logarithm, finite at zero and without a gradient there."""
    return prob.clamp_min(torch.finfo(prob.dtype).tiny).log()
