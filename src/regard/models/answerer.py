"""An answerer: an encoder over a question and its context, and at each piece a score to begin and one to end.

The answer is the pair of places with the largest sum. With a BERT it is BertForQuestionAnswering; an encoder
that tells no segments apart knows the question from the context by the mark between them alone.
"""

from typing import Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.dropout import Dropout
from regard.layers.inputs import tokens
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

    def forward(self, tokens_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor) -> tuple[Tensor, Tensor]:
        """start_BT and end_BT; −∞ where there is no piece."""
        states_BTD, _ = self.encoder(tokens(tokens_BT, lengths_B, segments_BT))
        scores_BT2 = self.spans(self.dropout(states_BTD))
        beyond_BT = torch.arange(tokens_BT.shape[1], device=tokens_BT.device) >= lengths_B[:, None]
        start_BT, end_BT = scores_BT2.masked_fill(beyond_BT[..., None], -torch.inf).unbind(-1)
        return start_BT, end_BT


class Spans(NamedTuple):
    """The best of each row: from the first to the last piece, both included."""

    score_B: Tensor
    first_B: Tensor
    last_B: Tensor


def best_spans(start_BT: Tensor, end_BT: Tensor, keep_BT: Tensor, most: int) -> Spans:
    """Of all spans of at most so many pieces inside what is kept, the one with the largest sum.

    Every pair is looked at: sums_BTA are those from each place to it and the A − 1 after it. A row that keeps
    nothing has −∞.
    """
    start_BT, end_BT = (scores.masked_fill(~keep_BT, -torch.inf) for scores in (start_BT, end_BT))
    reach = min(most, end_BT.shape[1])
    end_BTA = F.pad(end_BT, (0, reach - 1), value=-torch.inf).unfold(1, reach, 1)
    score_B, at_B = (start_BT[..., None] + end_BTA).flatten(1).max(1)
    first_B = at_B // reach
    return Spans(score_B, first_B, first_B + at_B % reach)
