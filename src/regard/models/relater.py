"""Relation classification: the relation between two marked entities of a sentence.

The marks are four tokens beyond the vocabulary, so that no text can spell them; the encoder reads them like
words, as the position indicators of Zhou et al. (2016), and they learn even where it is frozen. The states at
which the entities begin (the entity starts of Baldini Soares et al. 2019) are concatenated with the pooled
sentence; a hidden layer joins them.

With `entities = false`, a recurrent encoder and attention pooling it is close to Att-BLSTM of Zhou et al.,
but for these: both directions stand side by side instead of being added, the scores of the attention have a
matrix of their own, and so has the tanh after it.
"""

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.layers.dropout import Dropout
from regard.layers.inputs import Inputs
from regard.layers.pooling import PoolingKind, pooling
from regard.linear import Linear
from regard.models.encoders import EncoderConfig, EncodingConfig, RNNEncoderConfig
from regard.models.widths import Widths

N_MARKS = 4
"""Begin and end of the first entity, begin and end of the second: the last tokens of the vocabulary."""


class RelaterConfig(EncodingConfig):
    kind: Literal["relater"] = "relater"
    encoder: EncoderConfig = RNNEncoderConfig(d_hidden=256, dropout=0.5)
    entities: bool = Field(
        True, description="read the states at both entities too; without it the pooled sentence alone"
    )
    pooling: PoolingKind = "attention"
    dropout: float = Field(0.5, ge=0, lt=1, description="before and after the hidden layer")

    @property
    def d_model(self) -> int:
        return self.encoder.d_out

    def build(self, widths: Widths) -> "Relater":
        return Relater(self, widths)

    def __str__(self) -> str:
        return f"{self.describe('relater')}, {self.pooling} pooling{' and entities' * self.entities}"


class Relater(nn.Module):
    def __init__(self, config: RelaterConfig, widths: Widths) -> None:
        super().__init__()
        d_out = config.encoder.d_out
        first_mark = widths.input["vocab"] - N_MARKS
        self.begins = (first_mark, first_mark + 2) if config.entities else ()
        """The marks at which the entities begin, where they are read."""
        self.encoder = config.encoder.build({"vocab": first_mark})
        embed: Any = self.encoder.embed
        embed.add_marks(N_MARKS)
        self.pooling = pooling(config.pooling, d_out)
        self.dropout = Dropout(config.dropout)
        self.hidden = Linear((1 + len(self.begins)) * d_out, d_out)
        self.output = Linear(d_out, widths.target["classes"])

    def forward(self, inputs: Inputs) -> Tensor:
        """logits_BC; every row has each of the marks once."""
        tokens_BT, lengths_B = inputs["ids"], inputs["lengths"]
        states_BTD = self.encoder(inputs).states_RTD
        rows_B = torch.arange(tokens_BT.shape[0], device=tokens_BT.device)
        starts = [states_BTD[rows_B, (tokens_BT == mark).int().argmax(1)] for mark in self.begins]
        joined_BD = torch.cat([self.pooling(states_BTD, lengths_B), *starts], dim=-1)
        hidden_BD = torch.tanh(self.hidden(self.dropout(joined_BD)))
        logits_BC: Tensor = self.output(self.dropout(hidden_BD))
        return logits_BC
