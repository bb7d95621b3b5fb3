"""A tagger: an encoder, a score for each tag at each word, and perhaps a CRF over them.

The CRF knows which tags may follow one another (see tags.py) and learns how likely it is that they do.
"""

from itertools import product
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard import tags
from regard.config import Config
from regard.layers.crf import CRF, NO_TAG, Allowed
from regard.layers.dropout import Dropout
from regard.linear import Linear
from regard.models.classifier import EncoderConfig, RNNEncoderConfig
from regard.models.dims import Dims


class TaggerConfig(Config):
    kind: Literal["tagger"] = "tagger"
    encoder: EncoderConfig = RNNEncoderConfig(d_hidden=256, dropout=0.5)
    crf: bool = Field(True, description="learn which tags follow which; without it every word is alone")
    dropout: float = Field(0.5, ge=0, lt=1, description="before the last map")

    @property
    def d_model(self) -> int:
        return self.encoder.d_out

    def build(self, dims: Dims) -> "Tagger":
        return Tagger(self, dims)

    def __str__(self) -> str:
        return f"{self.encoder.kind} tagger, d={self.encoder.d_out}{', CRF' * self.crf}"


class Tagger(nn.Module):
    def __init__(self, config: TaggerConfig, dims: Dims) -> None:
        super().__init__()
        self.encoder = config.encoder.build(dims.source_vocab)
        self.dropout = Dropout(config.dropout)
        self.output = Linear(config.encoder.d_out, len(dims.tags))
        self.crf = CRF(len(dims.tags), allowed(dims.tags)) if config.crf else None

    def forward(self, tokens_BT: Tensor, lengths_B: Tensor, keep_BT: Tensor, tags_BT: Tensor) -> Tensor:
        """The sum over rows of −log p of their tags, at the kept positions."""
        scores_BTC = self.scores(tokens_BT, lengths_B)
        if self.crf is not None:
            cost: Tensor = self.crf(scores_BTC, keep_BT, tags_BT).sum()
            return cost
        return F.cross_entropy(scores_BTC[keep_BT], tags_BT[keep_BT], reduction="sum")

    def scores(self, tokens_BT: Tensor, lengths_B: Tensor) -> Tensor:
        scores_BTC: Tensor = self.output(self.dropout(self.encoder(tokens_BT, lengths_B)))
        return scores_BTC

    def best(self, scores_BTC: Tensor, keep_BT: Tensor, n: int = 1) -> tuple[Tensor, Tensor]:
        """The likeliest sequences, tags_BNT, and their log-probabilities; NO_TAG where nothing is kept."""
        if self.crf is not None:
            return self.crf.best(scores_BTC, keep_BT, n)
        log_prob_BT, tags_BT = scores_BTC.log_softmax(-1).max(-1)
        return tags_BT.masked_fill(~keep_BT, NO_TAG)[:, None], (log_prob_BT * keep_BT).sum(1, keepdim=True)

    def marginals(self, scores_BTC: Tensor, keep_BT: Tensor) -> Tensor:
        """How likely each tag is at each kept position."""
        if self.crf is not None:
            return self.crf.marginals(scores_BTC, keep_BT)
        return scores_BTC.softmax(-1) * keep_BT[..., None]


def allowed(names: tuple[str, ...]) -> Allowed | None:
    """What the scheme of these tags allows; None if they have none."""
    found = tags.scheme(names)
    if found is None:
        return None
    begin = [tags.may_follow(found, None, name) for name in names]
    end = [tags.may_follow(found, name, None) for name in names]
    steps = [tags.may_follow(found, *pair) for pair in product(names, repeat=2)]
    return Allowed(torch.tensor(begin), torch.tensor(steps).view(len(names), -1), torch.tensor(end))
