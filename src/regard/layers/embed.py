"""Tokens → vectors: a table, scaled, some words hidden, with positions added, dropped out."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Learned, Sinusoidal
from regard.layers.dropout import Dropout


class Embed(nn.Module):
    """`scale` multiplies by √d before positions are added, as in the paper (the table starts at 1/√d)."""

    def __init__(
        self,
        n_tokens: int,
        d_model: int,
        *,
        position: Sinusoidal | Learned | None = None,
        scale: bool = True,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_tokens, d_model))
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.position = position
        self.dropout, self.word_dropout = Dropout(dropout), Dropout(word_dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5)

    def forward(self, tokens_BT: Tensor, positions_BT: Tensor) -> Tensor:
        x_BTD = F.embedding(tokens_BT, self.weight) * self.scale
        if self.training and self.word_dropout.p:
            x_BTD = x_BTD * self.word_dropout(x_BTD.new_ones(*tokens_BT.shape, 1))
        if self.position is not None:
            x_BTD = x_BTD + self.position(positions_BT)
        out_BTD: Tensor = self.dropout(x_BTD)
        return out_BTD
