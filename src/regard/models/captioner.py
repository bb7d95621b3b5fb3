"""A captioner: an encoder of any input whose states are regions, and a decoder that attends to them.

"rnn" is Show, Attend and Tell (Xu et al. 2015, soft attention) as the RNN of Bahdanau et al. steps: it begins
with the mean of the regions, looks with its last state, and steps with what it saw. "transformer" is the
decoder of Vaswani et al. 2017. Not in the papers: a normalisation of the projected regions, and a learned
vector for each place in the plane, without which a convolution hardly says where something is.
"""

from typing import Annotated, Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.attention import Learned, tapped
from regard.config import Config
from regard.fields.axis import Axis
from regard.layers import heads
from regard.layers.block import BlockConfig
from regard.layers.dropout import Dropout
from regard.layers.inputs import Encoded, Inputs
from regard.layers.recurrent import CellKind
from regard.linear import Linear
from regard.models.encoders import EncoderConfig, EncodingConfig
from regard.models.encoders.cnn import CNNConfig
from regard.models.rnn_seq2seq import AttentionKind, RNNConfig, RNNSeq2Seq, RNNState
from regard.models.transformer import Transformer, TransformerConfig, TransformerState
from regard.models.widths import Width, Widths

LOOKS = "decoder.attention"
"""The site at which an RNN looks at regions."""


class RNNDecoderConfig(Config):
    kind: Literal["rnn"] = "rnn"
    cell: CellKind = "gru"
    d_embed: int = Field(256, ge=1)
    d_hidden: int = Field(256, ge=1, description="of a state; regions are projected to as many channels")
    n_layers: int = Field(1, ge=1, le=512)
    attention: AttentionKind = "additive"
    order: Literal["bahdanau", "luong"] = "bahdanau"
    input_feeding: bool | Literal["context"] = True
    combine: Literal["concat", "add"] = "concat"
    tie_embeddings: bool = Field(
        True, description="the output matrix is the embedding's (needs d_embed = d_hidden)"
    )
    doubly_stochastic: float = Field(
        0.0,
        ge=0,
        description="weight of Σ (1 − Σ attention)² over regions: each is looked at once (Xu et al.: 1)",
    )
    dropout: float = Field(0.3, ge=0, lt=1)

    @model_validator(mode="after")
    def _penalises_attention(self) -> "RNNDecoderConfig":
        if self.doubly_stochastic and self.attention == "none":
            raise ValueError('doubly_stochastic needs attention, which is "none"; set it to 0')
        return self

    @property
    def d_model(self) -> int:
        return self.d_hidden

    def build(self, target: Width) -> RNNSeq2Seq:
        settings = self.model_dump(exclude={"kind", "doubly_stochastic"})
        return RNNConfig(**settings, bidirectional=False).build(Widths({}, target))


class TransformerDecoderConfig(BlockConfig):
    kind: Literal["transformer"] = "transformer"
    n_layers: int = Field(3, ge=1, le=512)
    norm: Literal["post", "pre"] = "pre"
    tie_embeddings: bool = True
    doubly_stochastic: Literal[0] = Field(0, description="for an rnn decoder only")

    def build(self, target: Width) -> Transformer:
        settings = self.model_dump(exclude={"kind", "n_layers", "doubly_stochastic"})
        return TransformerConfig(**settings, n_decoder_layers=self.n_layers).build(Widths({}, target))


DecoderConfig = Annotated[RNNDecoderConfig | TransformerDecoderConfig, Field(discriminator="kind")]


class CaptionerConfig(EncodingConfig):
    kind: Literal["captioner"] = "captioner"
    encoder: EncoderConfig = CNNConfig()
    decoder: DecoderConfig = RNNDecoderConfig()
    dropout: float = Field(0.1, ge=0, lt=1, description="on the regions")

    @property
    def d_model(self) -> int:
        return self.decoder.d_model

    def build(self, widths: Widths) -> "Captioner":
        return Captioner(self, widths)

    def __str__(self) -> str:
        return f"{self.describe('captioner')}, {self.decoder.kind} decoder"


class Captioner(nn.Module):
    def __init__(self, config: CaptionerConfig, widths: Widths) -> None:
        super().__init__()
        self.config = config
        self.encoder = config.encoder.build(widths.input)
        d = config.decoder.d_model
        self.project = Linear(config.encoder.d_out, d)
        self.norm = nn.LayerNorm(d)
        grid = widths.input["rows"], widths.input["columns"]
        self.place = Learned(len(config.encoder.positions(Axis("", (), grid=grid))), d)
        self.dropout = Dropout(config.dropout)
        self.decoder: RNNSeq2Seq | Transformer = config.decoder.build(widths.target)

    def forward(
        self,
        inputs: Inputs,
        target_BT: Tensor,
        keep_BT: Tensor | None = None,
        head: heads.Head = heads.logits,
        *,
        penalised: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The `head` at the kept target positions, laid end to end (N); with `penalised` beside it
        penalty_B: Σ (1 − Σ attention)² over the regions of each.
        """
        encoded = self.encode(inputs)
        if isinstance(self.decoder, Transformer):
            return self.decoder.decode(encoded, target_BT, keep_BT, head)
        if not penalised:
            return self.decoder.decode(self.decoder.begin(encoded), target_BT, keep_BT, head)
        looks: list[Tensor] = []

        def look(weights_BHQK: Tensor, v_BHKW: Tensor) -> Tensor:
            looks.append(weights_BHQK)
            return weights_BHQK

        with tapped(self, {LOOKS: look}.get):
            out = self.decoder.decode(self.decoder.begin(encoded), target_BT, keep_BT, head)
        weights_BTK = torch.cat(looks, dim=2).mean(1)
        if keep_BT is not None:
            weights_BTK = weights_BTK * keep_BT[..., None]
        return out, ((1 - weights_BTK.sum(1)) ** 2).sum(1)

    def encode(self, inputs: Inputs) -> Encoded:
        """The regions as the decoder sees them, and their mean; of each input once for each of its targets,
        if `rows` says which targets are whose.
        """
        encoded: Encoded = self.encoder(inputs)
        states_RTD = self.norm(self.project(encoded.states_RTD))
        places_T = torch.arange(states_RTD.shape[1], device=states_RTD.device)
        states_RTD = self.dropout(states_RTD + self.place(places_T))
        lengths_R, rows = encoded.lengths_R, inputs.get("rows")
        if rows is not None:
            states_RTD, lengths_R = states_RTD[rows], lengths_R[rows]
        return Encoded(states_RTD, lengths_R, summary_RD=states_RTD.mean(1))

    def start(self, inputs: Inputs) -> RNNState | TransformerState:
        return self.decoder.begin(self.encode(inputs))

    def step(self, last_B: Tensor, state: Any) -> tuple[Tensor, Any]:
        return self.decoder.step(last_B, state)

    def select(self, state: Any, rows_B: Tensor, sources_B: Tensor | None = None) -> Any:
        return self.decoder.select(state, rows_B, sources_B)

    def positions(self, axis: Axis) -> Axis:
        """The axis of the encoder's states, which are the regions."""
        return self.config.encoder.positions(axis)
