"""SASRec: a causal Transformer over a history of items (Kang & McAuley 2018), a model of the next item.

Layers are pre-norm, as in the paper. Two differences: the loss is the task's choice (the paper's is binary
cross-entropy with one negative; a softmax over the catalogue is far better), and no dropout on attention
weights, which would forbid the fused kernel. With `time_gaps` attention also sees how long ago things were.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.attention import Attention, TimeGaps, causal
from regard.layers.block import BlockConfig, Position
from regard.layers.feedforward import Activation
from regard.layers.heads import HeadInput, logits
from regard.layers.inputs import Inputs
from regard.layers.stack import Stack, embedding, positions_like
from regard.linear import Linear
from regard.models.settings import ModelSettings
from regard.models.widths import Widths


class SASRecConfig(BlockConfig, ModelSettings):
    kind: Literal["sasrec"] = "sasrec"
    d_model: int = Field(64, ge=1, description="width of an item")
    n_heads: int = Field(2, ge=1)
    d_ff: int = Field(256, ge=1, description="inner width of the feed-forward network")
    n_layers: int = Field(2, ge=1, le=512)
    activation: Activation = "gelu"
    norm: Literal["post", "pre"] = "pre"
    position: Position = "learned"
    max_positions: int = Field(256, ge=1, description="only learned positions have a limit")
    dropout: float = Field(0.2, ge=0, lt=1, description="on embeddings and sub-layer outputs")
    time_gaps: bool = Field(False, description="attention also sees the time between two items")
    tie_embeddings: bool = Field(True, description="an item is scored with the vector it is read with")

    def attention(self, *, causal: bool = False, positioned: bool = True) -> Attention:
        attention = super().attention(causal=causal, positioned=positioned)
        if self.time_gaps:
            attention.distance = TimeGaps(self.n_heads)
        return attention

    def build(self, widths: Widths) -> "SASRec":
        return SASRec(self, widths)

    def __str__(self) -> str:
        return f"sasrec, {self.n_layers} layers, d={self.d_model}, {self.n_heads} heads"


class SASRec(nn.Module):
    def __init__(self, config: SASRecConfig, widths: Widths) -> None:
        super().__init__()
        self.time_gaps, n_items = config.time_gaps, widths.target["items"]
        self.embed = embedding(config, n_items, scale=False)
        self.stack = Stack(config, config.n_layers, causal=True)
        self.output = None if config.tie_embeddings else Linear(config.d_model, n_items, bias=False)

    def forward(self, inputs: Inputs, at_N: Tensor, head: Callable[[HeadInput], Any] = logits) -> Any:
        """The `head` of the states at these places among all of the batch's, laid end to end.

        The state at a place says what comes after it. Padding stands behind, and so in nobody's past.
        """
        items_BT = inputs["items"]
        places_BT = positions_like(items_BT)
        times_BT = inputs["times"] if self.time_gaps else places_BT
        hidden_BTD, _ = self.stack(self.embed(items_BT, places_BT), mask=causal(), positions_BT=times_BT)
        weight_VD = self.embed.weight if self.output is None else self.output.weight
        return head(HeadInput(torch.flatten(hidden_BTD, 0, 1)[at_N], weight_VD))
