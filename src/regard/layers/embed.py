"""Token embeddings: a table, scaled, with word dropout, positions and dropout."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Learned, Sinusoidal
from regard.layers.dropout import Dropout


class Embed(nn.Module):
    """A table that starts at σ = 1/√d; `scale` multiplies by √d before positions are added (the paper)."""

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
        self.marks: nn.Parameter | None = None
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.position = position
        self.dropout, self.word_dropout = Dropout(dropout), Dropout(word_dropout)
        self.reset_parameters()

    def add_marks(self, n: int) -> None:
        """Adds tokens beyond the table, in one of their own: it learns even where this one is frozen."""
        self.marks = nn.Parameter(self.weight.new_empty(n, self.weight.shape[1]))
        _init_normal(self.marks)

    def reset_parameters(self) -> None:
        for table in self.parameters(recurse=False):
            _init_normal(table)

    def forward(self, tokens_BT: Tensor, positions_BT: Tensor) -> Tensor:
        x_BTD = self._vectors(tokens_BT) * self.scale
        if self.training and self.word_dropout.p:
            x_BTD = x_BTD * self.word_dropout(x_BTD.new_ones(*tokens_BT.shape, 1))
        if self.position is not None:
            x_BTD = x_BTD + self.position(positions_BT)
        out_BTD: Tensor = self.dropout(x_BTD)
        return out_BTD

    def _vectors(self, tokens_BT: Tensor) -> Tensor:
        if self.marks is None:
            return F.embedding(tokens_BT, self.weight)
        beyond_BT = tokens_BT - len(self.weight)
        words_BTD = F.embedding(tokens_BT.clamp(max=len(self.weight) - 1), self.weight)
        marks_BTD = F.embedding(beyond_BT.clamp(min=0), self.marks)
        return torch.where(beyond_BT[..., None] < 0, words_BTD, marks_BTD)


def _init_normal(table: nn.Parameter) -> None:
    nn.init.normal_(table, std=table.shape[1] ** -0.5)
