"""Extractive question answering: an encoder over question and context, a start and an end score per token.

The answer is the span with the largest sum. With a BERT it is BertForQuestionAnswering; an encoder without
segments tells the question from the context by the mark between them alone.
"""

from typing import Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.dropout import Dropout
from regard.layers.inputs import Inputs
from regard.linear import Linear
from regard.models.encoders import EncodingConfig
from regard.models.widths import Widths


class AnswererConfig(EncodingConfig):
    kind: Literal["answerer"] = "answerer"
    dropout: float = Field(0.1, ge=0, lt=1, description="before the last map")

    @property
    def d_model(self) -> int:
        return self.encoder.d_out

    def build(self, widths: Widths) -> "Answerer":
        return Answerer(self, widths)

    def __str__(self) -> str:
        return self.describe("answerer")


class Answerer(nn.Module):
    def __init__(self, config: AnswererConfig, widths: Widths) -> None:
        super().__init__()
        encoder = config.encoder
        self.encoder = encoder.build(widths.input)
        self.dropout = Dropout(config.dropout)
        self.spans = Linear(encoder.d_out, 2)

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """start_RT and end_RT; −∞ where there is no token."""
        states_RTD, lengths_R, *_ = self.encoder(inputs)
        scores_RT2 = self.spans(self.dropout(states_RTD))
        beyond_RT = torch.arange(states_RTD.shape[1], device=lengths_R.device) >= lengths_R[:, None]
        start_RT, end_RT = scores_RT2.masked_fill(beyond_RT[..., None], -torch.inf).unbind(-1)
        return start_RT, end_RT


class Spans(NamedTuple):
    """The best span of each row, from its first to its last token, both included."""

    score_B: Tensor
    first_B: Tensor
    last_B: Tensor


def best_spans(start_BT: Tensor, end_BT: Tensor, keep_BT: Tensor, most: int) -> Spans:
    """The span with the largest sum, of all spans of at most `most` tokens among the kept ones.

    Every pair is considered: a row of end_BTA are the ends at a token and at the A − 1 after it. A row that
    keeps nothing scores −∞.
    """
    start_BT, end_BT = (scores.masked_fill(~keep_BT, -torch.inf) for scores in (start_BT, end_BT))
    reach = min(most, end_BT.shape[1])
    end_BTA = F.pad(end_BT, (0, reach - 1), value=-torch.inf).unfold(1, reach, 1)
    score_B, at_B = (start_BT[..., None] + end_BTA).flatten(1).max(1)
    first_B = at_B // reach
    return Spans(score_B, first_B, first_B + at_B % reach)
