"""Pooling, many states → one vector: by attention, by the first, by BERT's pooler, by the mean."""

from typing import Literal

import torch
from torch import Tensor, nn

from regard.attention import Additive, Attention, padding
from regard.linear import Linear

PoolingKind = Literal["attention", "first", "pooler", "mean"]


class AttentionPooling(nn.Module):
    """Additive attention from one learned query: weights = softmax(vᵀ tanh(W h + q)); the sum of w·h.

    The query plays the part of the bias in tanh(W h + b), so `W` has none.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query_D = nn.Parameter(torch.empty(d_model))
        self.attention = Attention(d_model, project="k", score=Additive(d_model), bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.query_D)

    def forward(self, states_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        query_B1D = self.query_D.expand(states_BTD.shape[0], 1, -1)
        memory = self.attention.project_kv(states_BTD)
        pooled_B1D: Tensor = self.attention(query_B1D, memory, mask=padding(lengths_B))
        return pooled_B1D.squeeze(1)


class First(nn.Module):
    """The state of the first token."""

    def __init__(self, d_model: int) -> None:
        super().__init__()

    def forward(self, states_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        return states_BTD[:, 0]

    def shares(self, n_states: int) -> Tensor:
        """shares_T: how much of each state is in the vector, whatever the states are."""
        return torch.eye(n_states)[0]


class Pooler(nn.Module):
    """BERT's pooler: tanh(W h + b) of the first token's state."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.dense = Linear(d_model, d_model)

    def forward(self, states_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        return torch.tanh(self.dense(states_BTD[:, 0]))

    def shares(self, n_states: int) -> Tensor:
        return torch.eye(n_states)[0]


class Mean(nn.Module):
    """The mean over real tokens."""

    def __init__(self, d_model: int) -> None:
        super().__init__()

    def forward(self, states_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        keep_BT = torch.arange(states_BTD.shape[1], device=lengths_B.device) < lengths_B[:, None]
        return (states_BTD * keep_BT[..., None]).sum(1) / lengths_B[:, None]

    def shares(self, n_states: int) -> Tensor:
        return torch.full((n_states,), 1 / n_states)


def pooling(kind: PoolingKind, d_model: int) -> nn.Module:
    kinds = {"attention": AttentionPooling, "first": First, "pooler": Pooler, "mean": Mean}
    return kinds[kind](d_model)
