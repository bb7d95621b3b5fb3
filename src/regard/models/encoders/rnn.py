"""A recurrent encoder over tokens, in one direction or both."""

from typing import ClassVar, Literal

from pydantic import Field
from torch import nn

from regard.layers.embed import Embed
from regard.layers.inputs import Encoded, Inputs
from regard.layers.recurrent import CellKind, Recurrent
from regard.layers.stack import positions_like
from regard.models.encoders.encoder import EncoderSettings
from regard.models.widths import Width


class RNNEncoderConfig(EncoderSettings):
    kind: Literal["rnn"] = "rnn"
    reads: ClassVar[str] = "tokens"
    cell: CellKind = "lstm"
    d_embed: int = Field(128, ge=1)
    d_hidden: int = Field(128, ge=2, multiple_of=2, description="of both directions together")
    n_layers: int = Field(1, ge=1, le=512)
    bidirectional: bool = True
    dropout: float = Field(0.3, ge=0, lt=1)
    word_dropout: float = Field(0.0, ge=0, lt=1, description="hides whole pieces in training")

    @property
    def d_out(self) -> int:
        return self.d_hidden

    def build(self, width: Width) -> "RNNEncoder":
        return RNNEncoder(self, width["vocab"])


class RNNEncoder(nn.Module):
    def __init__(self, config: RNNEncoderConfig, n_tokens: int) -> None:
        super().__init__()
        self.embed = Embed(
            n_tokens,
            config.d_embed,
            scale=False,
            dropout=config.dropout,
            word_dropout=config.word_dropout,
        )
        self.recurrent = Recurrent(
            config.cell,
            config.d_embed,
            config.d_hidden,
            config.n_layers,
            bidirectional=config.bidirectional,
            dropout=config.dropout,
        )

    def forward(self, inputs: Inputs) -> Encoded:
        tokens_BT, lengths_B = inputs["ids"], inputs["lengths"]
        x_BTD = self.embed(tokens_BT, positions_like(tokens_BT))
        return Encoded(self.recurrent(x_BTD, lengths_B)[0], lengths_B)
