"""A Transformer encoder over tokens."""

from typing import ClassVar, Literal

from pydantic import Field
from torch import nn

from regard.attention import padding
from regard.layers.block import BlockConfig
from regard.layers.inputs import Encoded, Inputs
from regard.layers.stack import Stack, embedding, positions_like
from regard.models.encoders.encoder import EncoderSettings
from regard.models.widths import Width


class TransformerEncoderConfig(BlockConfig, EncoderSettings):
    kind: Literal["transformer"] = "transformer"
    reads: ClassVar[str] = "tokens"
    d_model: int = Field(128, ge=1)
    d_ff: int = Field(256, ge=1)
    n_layers: int = Field(2, ge=1, le=512)

    @property
    def d_out(self) -> int:
        return self.d_model

    def build(self, width: Width) -> "TransformerEncoder":
        return TransformerEncoder(self, width["vocab"])


class TransformerEncoder(nn.Module):
    def __init__(self, config: TransformerEncoderConfig, n_tokens: int) -> None:
        super().__init__()
        self.embed = embedding(config, n_tokens)
        self.stack = Stack(config, config.n_layers)

    def forward(self, inputs: Inputs) -> Encoded:
        tokens_BT, lengths_B = inputs["ids"], inputs["lengths"]
        x_BTD = self.embed(tokens_BT, positions_like(tokens_BT))
        return Encoded(self.stack(x_BTD, mask=padding(lengths_B))[0], lengths_B)
