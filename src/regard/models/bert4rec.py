"""BERT4Rec: a Transformer that sees a history from both sides and fills in hidden items (Sun et al. 2019).

What comes next is a hidden item at the end. As in BERT, a hidden item is predicted through a dense layer with
a norm; the output matrix is the embedding's, with a bias of its own.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.attention import Attention, TimeGaps, padding
from regard.layers.block import BlockConfig, Position
from regard.layers.feedforward import activated
from regard.layers.heads import HeadInput, logits
from regard.layers.inputs import Inputs
from regard.layers.stack import Stack, embedding, positions_like
from regard.linear import Linear
from regard.models.settings import ModelSettings
from regard.models.widths import Widths


class BERT4RecConfig(BlockConfig, ModelSettings):
    kind: Literal["bert4rec"] = "bert4rec"
    d_model: int = Field(64, ge=1, description="width of an item")
    n_heads: int = Field(2, ge=1)
    d_ff: int = Field(256, ge=1, description="inner width of the feed-forward network")
    n_layers: int = Field(2, ge=1, le=512)
    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu"
    norm: Literal["post", "pre"] = "pre"
    position: Position = "learned"
    max_positions: int = Field(256, ge=1, description="only learned positions have a limit")
    dropout: float = Field(0.2, ge=0, lt=1, description="on embeddings and sub-layer outputs")
    time_gaps: bool = Field(False, description="attention also sees the time between two items")

    def attention(self, *, causal: bool = False, positioned: bool = True) -> Attention:
        attention = super().attention(causal=causal, positioned=positioned)
        if self.time_gaps:
            attention.distance = TimeGaps(self.n_heads)
        return attention

    def build(self, widths: Widths) -> "BERT4Rec":
        return BERT4Rec(self, widths)

    def __str__(self) -> str:
        return f"bert4rec, {self.n_layers} layers, d={self.d_model}, {self.n_heads} heads"


class BERT4Rec(nn.Module):
    def __init__(self, config: BERT4RecConfig, widths: Widths) -> None:
        super().__init__()
        self.time_gaps, self.activation = config.time_gaps, config.activation
        self.n_items = widths.target["items"]
        self.embed = embedding(config, self.n_items, scale=False)
        self.embed.add_marks(1)
        self.stack = Stack(config, config.n_layers)
        self.hidden = Linear(config.d_model, config.d_model)
        self.hidden_norm = nn.LayerNorm(config.d_model, config.norm_eps)
        self.output_bias = nn.Parameter(torch.empty(self.n_items))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.output_bias)

    def forward(self, inputs: Inputs, at_N: Tensor, head: Callable[[HeadInput], Any] = logits) -> Any:
        """The `head` of the states at these places among all of the batch's, laid end to end.

        An item is hidden by the number after the last of the catalogue.
        """
        items_BT = inputs["items"]
        places_BT = positions_like(items_BT)
        times_BT = inputs["times"] if self.time_gaps else places_BT
        states_BTD, _ = self.stack(
            self.embed(items_BT, places_BT), mask=padding(inputs["lengths"]), positions_BT=times_BT
        )
        hidden_ND = activated(self.hidden(torch.flatten(states_BTD, 0, 1)[at_N]), self.activation)
        return head(HeadInput(self.hidden_norm(hidden_ND), self.embed.weight, self.output_bias))
