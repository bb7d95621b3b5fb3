"""No encoder at all: the embeddings of the words themselves.

The weights of a pooling over them are then honest about words, where a recurrent encoder has already mixed
them (Jain & Wallace 2019 measure the difference), at some cost in accuracy.
"""

from typing import ClassVar, Literal

from pydantic import Field
from torch import nn

from regard.layers.embed import Embed
from regard.layers.inputs import Encoded, Inputs
from regard.layers.stack import positions_like
from regard.models.encoders.encoder import EncoderSettings
from regard.models.widths import Width


class WordsEncoderConfig(EncoderSettings):
    kind: Literal["words"] = "words"
    reads: ClassVar[str] = "tokens"
    d_embed: int = Field(128, ge=1)
    dropout: float = Field(0.3, ge=0, lt=1)

    @property
    def d_out(self) -> int:
        return self.d_embed

    def build(self, width: Width) -> "WordsEncoder":
        return WordsEncoder(self, width["vocab"])


class WordsEncoder(nn.Module):
    def __init__(self, config: WordsEncoderConfig, n_tokens: int) -> None:
        super().__init__()
        self.embed = Embed(n_tokens, config.d_embed, scale=False, dropout=config.dropout)

    def forward(self, inputs: Inputs) -> Encoded:
        tokens_BT = inputs["ids"]
        return Encoded(self.embed(tokens_BT, positions_like(tokens_BT)), inputs["lengths"])
