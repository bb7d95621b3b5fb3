"""BERT (Devlin et al. 2019): a bidirectional Transformer encoder over one text or two.

Tokens, positions and segments (which of the two texts) are added up and normalised; layers are post-norm with
GELU. Two differences from the paper: attention weights are not dropped out by default, because that would
forbid the fused kernel, and first weights are those of `Linear` and `Embed`, not normal with σ = 0.02.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import nn

from regard.attention import Learned, padding
from regard.layers.block import BlockConfig
from regard.layers.dropout import Dropout
from regard.layers.embed import Embed
from regard.layers.feedforward import Activation
from regard.layers.inputs import Encoded, Inputs
from regard.layers.stack import Stack, positions_like
from regard.models.encoders.encoder import EncoderSettings
from regard.models.widths import Width


def _sizes(d_model: int, n_layers: int) -> dict[str, Any]:
    """The sizes of a preset: heads are 64 wide and d_ff is four times d_model in each."""
    return {"d_model": d_model, "n_heads": d_model // 64, "d_ff": 4 * d_model, "n_layers": n_layers}


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": _sizes(128, 2),
    "mini": _sizes(256, 4),
    "small": _sizes(512, 4),
    "medium": _sizes(512, 8),
    "base": _sizes(768, 12),
}


class BertConfig(BlockConfig, EncoderSettings):
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    kind: Literal["bert"] = "bert"
    reads: ClassVar[str] = "tokens"
    preset: Literal["tiny", "mini", "small", "medium", "base"] | None = Field(
        None, description="sizes to start from; fields given beside it win (base is the paper's)"
    )
    d_model: int = Field(128, ge=1)
    n_heads: int = Field(2, ge=1)
    d_ff: int = Field(512, ge=1)
    n_layers: int = Field(2, ge=1, le=512)
    n_segments: int = Field(2, ge=1, le=512, description="texts that one input can hold apart")
    n_kv_heads: None = None
    activation: Activation = "gelu"
    norm: Literal["post"] = "post"
    norm_eps: float = Field(1e-12, gt=0)
    bias: Literal[True] = True
    position: Literal["learned"] = "learned"
    max_positions: int = Field(512, ge=4, description="tokens of an input, marks included")

    @property
    def d_out(self) -> int:
        return self.d_model

    def build(self, width: Width) -> "Bert":
        return Bert(self, width["vocab"])


class Bert(nn.Module):
    def __init__(self, config: BertConfig, n_tokens: int) -> None:
        super().__init__()
        position = Learned(config.max_positions, config.d_model)
        self.embed = Embed(
            n_tokens, config.d_model, position=position, scale=False, word_dropout=config.word_dropout
        )
        self.segment = Embed(config.n_segments, config.d_model, scale=False)
        self.embed_norm = nn.LayerNorm(config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.stack = Stack(config, config.n_layers)

    def forward(self, inputs: Inputs) -> Encoded:
        """Encode; without segments, or where it has only one, everything belongs to the first."""
        tokens_BT, lengths_B, segments_BT = inputs["ids"], inputs["lengths"], inputs.get("segments")
        positions_1T = positions_like(tokens_BT)
        if segments_BT is None or len(self.segment.weight) == 1:
            segments_BT = torch.zeros_like(positions_1T)
        x_BTD = self.embed(tokens_BT, positions_1T) + self.segment(segments_BT, positions_1T)
        x_BTD = self.dropout(self.embed_norm(x_BTD))
        return Encoded(self.stack(x_BTD, mask=padding(lengths_B))[0], lengths_B)
