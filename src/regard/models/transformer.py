"""The Transformer of Vaswani et al. 2017: an encoder and a decoder made of attention.

Differences from the paper, each a choice of the config: pre-norm, GELU and SwiGLU, other positions,
grouped key/value heads. One by default: no dropout on attention weights, because it would forbid the fused
kernel (residual and embedding dropout are the paper's). Embeddings are tied with the output, and with each
other when the vocabulary is joint, as in the paper.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.attention import Static, Unpadded, causal, padding
from regard.layers import heads
from regard.layers.block import BlockConfig
from regard.layers.copying import Copyable, Copying
from regard.layers.cpu.fused_step import FusedStep, padding_bias
from regard.layers.cpu.output_projection import OutputProjection
from regard.layers.embed import Embed
from regard.layers.inputs import Encoded, Inputs
from regard.layers.stack import Stack, embedding, positions_like
from regard.linear import Linear
from regard.models.settings import ModelSettings
from regard.models.widths import Widths


def _sizes(d_model: int, n_heads: int, d_ff: int, n_layers: int, *, dropout: float) -> dict[str, Any]:
    """The sizes of a preset, encoder and decoder equally deep."""
    sizes = {"d_model": d_model, "n_heads": n_heads, "d_ff": d_ff, "dropout": dropout}
    return sizes | {"n_encoder_layers": n_layers, "n_decoder_layers": n_layers}


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": _sizes(128, 4, 256, 4, dropout=0.3),
    "small": _sizes(256, 4, 1024, 3, dropout=0.1),
    "base": _sizes(512, 8, 2048, 6, dropout=0.1),
    "big": _sizes(1024, 16, 4096, 6, dropout=0.3),
}


class TransformerConfig(BlockConfig, ModelSettings):
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    kind: Literal["transformer"] = "transformer"
    preset: Literal["tiny", "small", "base", "big"] | None = Field(
        None, description="sizes to start from; fields given beside it win (base and big are the paper's)"
    )
    n_encoder_layers: int = Field(3, ge=1, le=512)
    n_decoder_layers: int = Field(3, ge=1, le=512)
    tie_embeddings: bool = True
    copies: bool = Field(
        False, description="tokens of the source can be copied, names above all; needs task.joint = true"
    )

    def build(self, widths: Widths) -> "Transformer":
        return Transformer(self, widths)

    def __str__(self) -> str:
        layers = f"{self.n_encoder_layers}+{self.n_decoder_layers}"
        sizes = f"transformer {layers} layers, d={self.d_model}, {self.n_heads} heads"
        return sizes if self.reach is None else f"{sizes}, {self.reach}"


@dataclass(frozen=True)
class TransformerState:
    memory: tuple[Static, ...]
    lengths_B: Tensor
    past: tuple[Any, ...] | None = None
    """Past of each layer: keys and values, or what else its reach keeps."""
    fused_step: FusedStep | None = None
    """Takes the steps where that is possible."""
    memory_bias_B11K: Tensor | None = None
    """The additive mask of the memory, for the fused step."""
    project: OutputProjection | None = None
    source: Copyable | None = None
    """The source to copy from, if the model copies."""
    places_K: Tensor | None = None
    """The positions that are kept of the past, if the decoder has a reach; None if all are."""
    n_read: int | None = None
    """Positions that were read, where the past does not say so."""


class Transformer(nn.Module):
    def __init__(self, config: TransformerConfig, widths: Widths) -> None:
        super().__init__()
        self.embed_target = embedding(config, widths.target["vocab"])
        shared = widths.shared and config.tie_embeddings
        self.embed_source: Embed | None = None
        self.encoder: Stack | None = None
        if "vocab" in widths.input:  # else the model is a decoder over states that others make
            self.embed_source = None if shared else embedding(config, widths.input["vocab"])
            self.encoder = Stack(config, config.n_encoder_layers)
        self.decoder = Stack(config, config.n_decoder_layers, causal=True, cross=True)
        n_tokens = widths.target["vocab"]
        self.output = None if config.tie_embeddings else Linear(config.d_model, n_tokens, bias=False)
        self.copying = Copying(config.d_model) if config.copies else None
        self.reach = None if config.reach is None else config.reach.build(causal=True)

    def forward(
        self,
        inputs: Inputs,
        target_BT: Tensor,
        keep_BT: Tensor | None = None,
        head: heads.Head = heads.logits,
    ) -> Tensor:
        """The `head` of the decoder's states at the kept target positions, laid end to end (N)."""
        encoded = self.encode(inputs, unpad=self.training)
        return self.decode(encoded, target_BT, keep_BT, head, inputs["ids"])

    def decode(
        self,
        encoded: Encoded,
        target_BT: Tensor,
        keep_BT: Tensor | None,
        head: heads.Head,
        source_BK: Tensor | None = None,
    ) -> Tensor:
        """The same over encoded sources; `source_BK` is what could be copied."""
        memory = self.decoder.project_kv(encoded.states_RTD, unpadded=encoded.unpadded)
        hidden_BTD, _ = self.decoder(
            self.embed_target(target_BT, positions_like(target_BT)),
            mask=causal(),
            memory=memory,
            memory_mask=padding(encoded.lengths_R),
        )
        copied = None
        if self.copying is not None:
            assert source_BK is not None
            copied = self.copying(hidden_BTD, self.copying.project_source(encoded, source_BK))
        out = heads.HeadInput(hidden_BTD.flatten(0, 1), self.output_weight, copied=copied)
        return head(out if keep_BT is None else out.at(keep_BT.flatten()))

    @property
    def output_weight(self) -> Tensor:
        return self.embed_target.weight if self.output is None else self.output.weight

    def encode(self, inputs: Inputs, *, unpad: bool = False) -> Encoded:
        """The states of the source; with `unpad` those of its real positions alone.

        That is for training: an answer must not depend, to the bit, on the lengths of others in its batch.
        """
        assert self.encoder is not None
        source_BK, lengths_B = inputs["ids"], inputs["lengths"]
        unpadded = Unpadded.of(lengths_B, source_BK.shape[1]) if unpad else None
        embed = self.embed_target if self.embed_source is None else self.embed_source
        x_BKD = embed(source_BK, positions_like(source_BK))
        if unpadded is not None:
            x_BKD = unpadded.gather(x_BKD)
        states_BKD, _ = self.encoder(x_BKD, mask=padding(lengths_B), unpadded=unpadded)
        return Encoded(states_BKD, lengths_B, unpadded=unpadded)

    def start(self, inputs: Inputs) -> TransformerState:
        return self.begin(self.encode(inputs), inputs["ids"])

    def begin(self, encoded: Encoded, source_BK: Tensor | None = None) -> TransformerState:
        """The state before the first token, over encoded sources; `source_BK` is what could be copied."""
        lengths_B = encoded.lengths_R
        memory = self.decoder.project_kv(encoded.states_RTD)
        fused_step = FusedStep.of(self.embed_target, self.decoder)
        memory_bias = (
            None
            if fused_step is None
            else padding_bias(lengths_B, encoded.states_RTD.shape[1], memory[0].k_BGKE.dtype)
        )
        source = None
        if self.copying is not None:
            assert source_BK is not None
            source = self.copying.project_source(encoded, source_BK)
        has_reach = self.reach is not None
        return TransformerState(
            memory,
            lengths_B,
            None,
            fused_step,
            memory_bias,
            OutputProjection(self.output_weight),
            source,
            places_K=lengths_B[:0] if has_reach else None,
            n_read=0 if has_reach else None,
        )

    def step(self, last_B: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        if state.fused_step is not None and not state.fused_step.is_tapped:
            hidden_BD, past = state.fused_step(last_B, state.past, state.memory, state.memory_bias_B11K)
            return self._logits(hidden_BD, state), replace(state, past=past)
        n_past = state.n_read
        if n_past is None:
            n_past = 0 if state.past is None else state.past[0].k_BGKE.shape[2]
        state = self._within_reach(state)
        positions = positions_like(last_B[:, None], n_past)
        hidden_B1D, past = self.decoder(
            self.embed_target(last_B[:, None], positions),
            mask=causal(),
            positions_BT=positions if state.fused_step is None else None,  # else no layer asks for them
            past=state.past,
            memory=state.memory,
            memory_mask=padding(state.lengths_B),
        )
        if state.places_K is not None:
            state = replace(state, places_K=torch.cat([state.places_K, positions[0]]), n_read=n_past + 1)
        return self._logits(hidden_B1D.squeeze(1), state), replace(state, past=past)

    def _within_reach(self, state: TransformerState) -> TransformerState:
        """The state without the past that will not be seen again, once it is an eighth of all."""
        if self.reach is None or state.past is None or state.places_K is None or state.n_read is None:
            return state
        lasting_K = self.reach.lasts(torch.tensor(state.n_read), state.places_K).nonzero().squeeze(1)
        if 8 * (len(state.places_K) - len(lasting_K)) <= len(state.places_K):
            return state
        past = tuple(cache.slots(lasting_K) for cache in state.past)
        return replace(state, past=past, places_K=state.places_K[lasting_K])

    def _logits(self, hidden_BD: Tensor, state: TransformerState) -> Tensor:
        logits_BV = (state.project or OutputProjection(self.output_weight))(hidden_BD)
        if self.copying is None:
            return logits_BV
        return heads.with_copies(logits_BV, self.copying(hidden_BD[:, None], state.source))

    def select(
        self, state: TransformerState, rows_B: Tensor, sources_B: Tensor | None = None
    ) -> TransformerState:
        past = None if state.past is None else tuple(cache.select(rows_B) for cache in state.past)
        if sources_B is None:
            return replace(state, past=past)
        memory = tuple(cache.select(sources_B) for cache in state.memory)
        return replace(
            state,
            memory=memory,
            lengths_B=state.lengths_B[sources_B],
            past=past,
            memory_bias_B11K=None if state.memory_bias_B11K is None else state.memory_bias_B11K[sources_B],
            source=None if state.source is None else state.source.select(sources_B),
        )
