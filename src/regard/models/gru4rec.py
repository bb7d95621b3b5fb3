"""GRU4Rec: a recurrent network over a history of items (Hidasi et al. 2016), a model of the next item.

With `attention` the last state also looks back at all states before it, by additive attention, and both
together say what comes next (NARM, Li et al. 2017; its two networks are one here).
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.attention import Additive, Attention, causal
from regard.layers.dropout import Dropout
from regard.layers.embed import Embed
from regard.layers.heads import HeadInput, logits
from regard.layers.inputs import Inputs
from regard.layers.recurrent import CellKind, Recurrent
from regard.layers.stack import positions_like
from regard.linear import Linear
from regard.models.settings import ModelSettings
from regard.models.widths import Widths


class GRU4RecConfig(ModelSettings):
    kind: Literal["gru4rec"] = "gru4rec"
    cell: CellKind = "gru"
    d_model: int = Field(64, ge=1, description="width of an item")
    d_hidden: int = Field(128, ge=1, description="width of a state")
    n_layers: int = Field(1, ge=1, le=512)
    attention: bool = Field(False, description="each state looks back at all before it")
    dropout: float = Field(0.2, ge=0, lt=1, description="on embeddings and before the output")
    tie_embeddings: bool = Field(True, description="an item is scored with the vector it is read with")

    def build(self, widths: Widths) -> "GRU4Rec":
        return GRU4Rec(self, widths)

    def __str__(self) -> str:
        attentive = " with attention" if self.attention else ""
        return f"gru4rec{attentive}, {self.n_layers} layers of {self.cell}, d={self.d_hidden}"


class GRU4Rec(nn.Module):
    def __init__(self, config: GRU4RecConfig, widths: Widths) -> None:
        super().__init__()
        d_model, d_hidden, n_items = config.d_model, config.d_hidden, widths.target["items"]
        self.embed = Embed(n_items, d_model, scale=False, dropout=config.dropout)
        self.recurrent = Recurrent(
            config.cell, d_model, d_hidden, config.n_layers, bidirectional=False, dropout=config.dropout
        )
        self.attention = (
            Attention(d_hidden, project="qk", score=Additive(d_hidden), bias=False)
            if config.attention
            else None
        )
        self.dropout = Dropout(config.dropout)
        self.hidden = Linear(d_hidden * (2 if config.attention else 1), d_model)
        self.output = None if config.tie_embeddings else Linear(d_model, n_items, bias=False)

    def forward(self, inputs: Inputs, at_N: Tensor, head: Callable[[HeadInput], Any] = logits) -> Any:
        """The `head` of the states at these places among all of the batch's, laid end to end."""
        items_BT = inputs["items"]
        embedded_BTD = self.embed(items_BT, positions_like(items_BT))
        states_BTD, _ = self.recurrent(embedded_BTD, inputs["lengths"])
        if self.attention is not None:
            seen_BTD, _ = self.attention.self_attend(states_BTD, mask=causal())
            states_BTD = torch.cat([states_BTD, seen_BTD], dim=-1)
        hidden_ND = self.hidden(self.dropout(torch.flatten(states_BTD, 0, 1)[at_N]))
        weight_VD = self.embed.weight if self.output is None else self.output.weight
        return head(HeadInput(hidden_ND, weight_VD))
