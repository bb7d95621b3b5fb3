"""A tagger: an encoder, a score for each tag at each word, and perhaps a CRF over them.

A word is what the encoder says at its first piece. Words may stand in several windows of a long sentence; the
scores are put together before the CRF sees them, so that it goes over the whole sentence. It knows which tags
may follow one another (see tags.py) and learns how likely it is that they do.
"""

from itertools import product
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.crf import CRF, NO_TAG, Allowed
from regard.layers.dropout import Dropout
from regard.layers.inputs import tokens
from regard.linear import Linear
from regard.models.encoders import EncoderConfig, EncodingConfig, RNNEncoderConfig
from regard.models.widths import Widths
from regard.text import tags


class TaggerConfig(EncodingConfig):
    kind: Literal["tagger"] = "tagger"
    encoder: EncoderConfig = RNNEncoderConfig(d_hidden=256, dropout=0.5)
    crf: bool = Field(True, description="learn which tags follow which; without it every word is alone")
    dropout: float = Field(0.5, ge=0, lt=1, description="before the last map")

    @property
    def d_model(self) -> int:
        return self.encoder.d_out

    def build(self, widths: Widths) -> "Tagger":
        return Tagger(
            self.encoder.build(widths.input),
            Linear(self.encoder.d_out, len(widths.target["tags"])),
            CRF(len(widths.target["tags"]), allowed(widths.target["tags"])) if self.crf else None,
            self.dropout,
        )

    def __str__(self) -> str:
        return f"{self.describe('tagger')}{', CRF' * self.crf}"


class Tagger(nn.Module):
    def __init__(self, encoder: nn.Module, output: nn.Module, crf: CRF | None, dropout: float) -> None:
        super().__init__()
        self.encoder, self.dropout, self.output, self.crf = encoder, Dropout(dropout), output, crf

    def forward(
        self, tokens_RT: Tensor, lengths_R: Tensor, at_BN: Tensor, keep_BN: Tensor, tags_BN: Tensor
    ) -> Tensor:
        """The sum over sentences of −log p of their tags."""
        scores_BNC = self.scores(tokens_RT, lengths_R, at_BN)
        if self.crf is not None:
            cost: Tensor = self.crf(scores_BNC, keep_BN, tags_BN).sum()
            return cost
        return F.cross_entropy(scores_BNC[keep_BN], tags_BN[keep_BN], reduction="sum")

    def scores(self, tokens_RT: Tensor, lengths_R: Tensor, at_BN: Tensor) -> Tensor:
        """scores_BNC of sentences' words, found at these places among all pieces of all windows."""
        states_RTD, _ = self.encoder(tokens(tokens_RT, lengths_R))
        scores_BNC: Tensor = self.output(self.dropout(states_RTD.flatten(0, 1)[at_BN]))
        return scores_BNC

    def best(self, scores_BNC: Tensor, keep_BN: Tensor) -> Tensor:
        """The likeliest tags_BN; NO_TAG where no word is."""
        if self.crf is not None:
            return self.crf.best(scores_BNC, keep_BN)
        return scores_BNC.argmax(-1).masked_fill(~keep_BN, NO_TAG)

    def marginals(self, scores_BNC: Tensor, keep_BN: Tensor) -> Tensor:
        """How likely each tag is at each word, whatever the others are."""
        if self.crf is not None:
            return self.crf.marginals(scores_BNC, keep_BN)
        return scores_BNC.softmax(-1) * keep_BN[..., None]

    def transitions(self) -> Tensor | None:
        """step_CC: how likely each tag is after each other, if words said nothing; None without a CRF.

        Zeros after a tag that nothing may follow.
        """
        return None if self.crf is None else self.crf.weights()[1].softmax(-1).nan_to_num(0.0)


def allowed(names: tuple[str, ...]) -> Allowed | None:
    """What the scheme of these tags allows; None if they have none.

    On the processor whatever is being built, as an outline of the model needs it too.
    """
    found = tags.scheme(names)
    if found is None:
        return None
    begin = [tags.may_follow(found, None, name) for name in names]
    end = [tags.may_follow(found, name, None) for name in names]
    steps = [tags.may_follow(found, *pair) for pair in product(names, repeat=2)]
    begin_C, step_N, end_C = (torch.tensor(part, device="cpu") for part in (begin, steps, end))
    return Allowed(begin_C, step_N.view(len(names), -1), end_C)
