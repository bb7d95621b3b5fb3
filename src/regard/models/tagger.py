"""A tagger: an encoder, a score for each tag at each word, and perhaps a CRF over them.

A word is represented by the state at its first token. Words may stand in several windows of a long sentence;
their scores are put together first, so that the CRF goes over the whole sentence. It knows which tags may
follow one another (text/tags.py) and learns how likely it is that they do.
"""

from itertools import product
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.crf import CRF, Allowed
from regard.layers.dropout import Dropout
from regard.layers.inputs import NO_TAG, Inputs
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

    def forward(self, inputs: Inputs, tags_BN: Tensor) -> Tensor:
        """The sum over sentences of −log p of their tags; words without one (NO_TAG) are left out."""
        scores_BNC, keep_BN = self.scores(inputs), tags_BN != NO_TAG
        if self.crf is not None:
            cost: Tensor = self.crf(scores_BNC, keep_BN, tags_BN).sum()
            return cost
        return F.cross_entropy(scores_BNC[keep_BN], tags_BN[keep_BN], reduction="sum")

    def scores(self, inputs: Inputs) -> Tensor:
        """scores_BNC of sentences' words, whose `places` are among all states of all windows."""
        states_RTD = self.encoder(inputs).states_RTD
        places_BN = inputs["places"].clamp(min=0)
        scores_BNC: Tensor = self.output(self.dropout(states_RTD.flatten(0, 1)[places_BN]))
        return scores_BNC

    def best(self, scores_BNC: Tensor, keep_BN: Tensor) -> Tensor:
        """The likeliest tags_BN; NO_TAG at padding."""
        if self.crf is not None:
            return self.crf.best(scores_BNC, keep_BN)
        return scores_BNC.argmax(-1).masked_fill(~keep_BN, NO_TAG)

    def marginals(self, scores_BNC: Tensor, keep_BN: Tensor) -> Tensor:
        """The probability of each tag at each word."""
        if self.crf is not None:
            return self.crf.marginals(scores_BNC, keep_BN)
        return scores_BNC.softmax(-1) * keep_BN[..., None]

    def transitions(self) -> Tensor | None:
        """step_CC: the probability of each tag after each other, words aside; None without a CRF.

        Zeros after a tag that nothing may follow.
        """
        return None if self.crf is None else self.crf.weights()[1].softmax(-1).nan_to_num(0.0)


def allowed(names: tuple[str, ...]) -> Allowed | None:
    """The transitions that the scheme of these tags allows; None without a scheme.

    On the CPU even while a model is built on the meta device, which needs it too.
    """
    scheme = tags.scheme(names)
    if scheme is None:
        return None
    begin = [tags.may_follow(scheme, None, name) for name in names]
    end = [tags.may_follow(scheme, name, None) for name in names]
    steps = [tags.may_follow(scheme, *pair) for pair in product(names, repeat=2)]
    begin_C, step_N, end_C = (torch.tensor(part, device="cpu") for part in (begin, steps, end))
    return Allowed(begin_C, step_N.view(len(names), -1), end_C)
