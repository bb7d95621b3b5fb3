"""Scores, how well a query and a key fit: scores_BHQK. Everything else about attention lives elsewhere.

A score holds no key matrix of its own: W_k is the ordinary projection of `Attention`, so that a
static cache holds projected keys. `as_dot` tells the fused kernels which scaled dot product equals
the score; a score that is no dot product answers None.
"""

import math

import torch
from torch import Tensor, nn


class Score(nn.Module):
    """score(q, k). A subclass defines `as_dot` if it is a dot product in disguise, else `forward`."""

    def as_dot(self, q_BHQE: Tensor) -> tuple[Tensor, float] | None:
        return None

    def forward(self, q_BHQE: Tensor, k_BHKE: Tensor) -> Tensor:
        dot = self.as_dot(q_BHQE)
        assert dot is not None, "a score that is not a dot product must define forward"
        q, scale = dot
        return (q * scale) @ k_BHKE.transpose(-1, -2)


class ScaledDot(Score):
    """q·k / √E (Vaswani et al. 2017)."""

    def as_dot(self, q_BHQE: Tensor) -> tuple[Tensor, float]:
        return q_BHQE, q_BHQE.shape[-1] ** -0.5


class Dot(Score):
    """q·k (Luong et al. 2015, "dot"); the queries and keys must be equally wide."""

    def as_dot(self, q_BHQE: Tensor) -> tuple[Tensor, float]:
        return q_BHQE, 1.0


class General(Score):
    """qᵀ W k (Luong et al. 2015, "general"): the query is taken to the keys' space, then a dot."""

    def __init__(self, d_query: int, d_key: int, n_heads: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_heads, d_query, d_key))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = math.sqrt(6 / (self.weight.shape[1] + self.weight.shape[2]))
        nn.init.uniform_(self.weight, -bound, bound)

    def as_dot(self, q_BHQE: Tensor) -> tuple[Tensor, float]:
        return q_BHQE @ self.weight, 1.0


class Additive(Score):
    """vᵀ tanh(q + k) (Bahdanau et al. 2015); W_q and W_k are the ordinary projections.

    vᵀ tanh(W [q; k]) is the same function with W = [W_q W_k] as one matrix.
    """

    def __init__(self, d_key: int, n_heads: int = 1) -> None:
        super().__init__()
        self.v_HE = nn.Parameter(torch.empty(n_heads, d_key))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.v_HE.shape[-1] ** -0.5
        nn.init.uniform_(self.v_HE, -bound, bound)

    def forward(self, q_BHQE: Tensor, k_BHKE: Tensor) -> Tensor:
        joined_BHQKE = torch.tanh(q_BHQE[..., :, None, :] + k_BHKE[..., None, :, :])
        return torch.einsum("bhqke,he->bhqk", joined_BHQKE, self.v_HE)
