"""The recurrent encoder-decoder, without attention (Sutskever et al. 2014; Cho et al. 2014) and with it
(Bahdanau et al. 2015; Luong et al. 2015).

`attention = "none"` is the fixed context vector: the encoder's final state, given to every step.
`order` says when the decoder looks. "bahdanau": attend with the previous state, then step with what was
seen. "luong": step, then attend with the new state. `input_feeding` says what of that enters the next step:
true the attentional vector g(h'_i, C_i), as Luong et al. have it; "context" the context alone, which makes it
h'_i = D(y_{i−1}, h'_{i−1}, C_{i−1}); false nothing.
`combine` is g(h, c): "concat" = tanh(W [h; c]), "add" = h + c.
Not in the papers: dropout, a tanh bridge from the encoder's final state to every decoder layer, and an
output tied to the target embeddings when the widths allow it.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.attention import Additive, Attention, Dot, General, ScaledDot, Static, padding
from regard.layers import heads
from regard.layers.copying import Copyable, Copying
from regard.layers.cpu.output_projection import OutputProjection
from regard.layers.dropout import Dropout
from regard.layers.embed import Embed
from regard.layers.inputs import Encoded, Inputs
from regard.layers.recurrent import CellKind, CellStack, CellState, Recurrent
from regard.layers.stack import positions_like
from regard.linear import Linear
from regard.models.settings import ModelSettings
from regard.models.widths import Widths

AttentionKind = Literal["none", "dot", "scaled_dot", "general", "additive"]


class RNNConfig(ModelSettings):
    kind: Literal["rnn_seq2seq"] = "rnn_seq2seq"
    cell: CellKind = "gru"
    d_embed: int = Field(256, ge=1)
    d_hidden: int = Field(
        256, ge=1, description="of a decoder state and of an encoder state (both directions)"
    )
    n_layers: int = Field(1, ge=1, le=512)
    bidirectional: bool = True
    attention: AttentionKind = "additive"
    order: Literal["bahdanau", "luong"] = "bahdanau"
    input_feeding: bool | Literal["context"] = True
    combine: Literal["concat", "add"] = "concat"
    tie_embeddings: bool = Field(
        True, description="the output matrix is the target embedding's (needs d_embed = d_hidden)"
    )
    copies: bool = Field(
        False, description="tokens of the source can be copied, names above all; needs task.joint = true"
    )
    dropout: float = Field(0.3, ge=0, lt=1)

    @model_validator(mode="after")
    def _sizes_fit(self) -> "RNNConfig":
        if self.bidirectional and self.d_hidden % 2:
            raise ValueError(f"d_hidden ({self.d_hidden}) must be even: it is shared by the two directions")
        return self

    @property
    def d_model(self) -> int:
        return self.d_hidden

    def build(self, widths: Widths) -> "RNNSeq2Seq":
        return RNNSeq2Seq(self, widths)

    def __str__(self) -> str:
        size = f"{self.n_layers} layer(s), d={self.d_hidden}"
        return f"{self.cell} encoder-decoder, {size}, attention {self.attention}"


def attention(kind: AttentionKind, d_hidden: int) -> Attention | None:
    if kind == "none":
        return None
    if kind == "additive":
        return Attention(d_hidden, project="qk", score=Additive(d_hidden))
    if kind == "general":
        return Attention(d_hidden, project="", score=General(d_hidden, d_hidden))
    return Attention(d_hidden, project="", score=Dot() if kind == "dot" else ScaledDot())


@dataclass(frozen=True)
class Memory:
    """The memory of the decoder: each source's states, and their summary."""

    states: Static | None
    lengths_B: Tensor
    summary_BD: Tensor

    def select(self, sources_B: Tensor) -> "Memory":
        states = None if self.states is None else self.states.select(sources_B)
        return Memory(states, self.lengths_B[sources_B], self.summary_BD[sources_B])


@dataclass(frozen=True)
class RNNState:
    memory: Memory
    layers: tuple[CellState, ...]
    fed_BD: Tensor
    """The attentional vector of the step before; zeros at first."""
    context_BD: Tensor | None = None
    """The context of the step before, if that is fed; zeros at first."""
    project: OutputProjection | None = None
    source: Copyable | None = None
    """The source to copy from, if the model copies."""


class RNNSeq2Seq(nn.Module):
    def __init__(self, config: RNNConfig, widths: Widths) -> None:
        super().__init__()
        d = config.d_hidden
        self.embed_target = Embed(widths.target["vocab"], config.d_embed, scale=False, dropout=config.dropout)
        shared = widths.shared and config.tie_embeddings
        self.embed_source: Embed | None = None
        self.encoder: Recurrent | None = None
        if "vocab" in widths.input:  # else the model is a decoder over states that others make
            self.embed_source = (
                None
                if shared
                else Embed(widths.input["vocab"], config.d_embed, scale=False, dropout=config.dropout)
            )
            self.encoder = Recurrent(
                config.cell,
                config.d_embed,
                d,
                config.n_layers,
                bidirectional=config.bidirectional,
                dropout=config.dropout,
            )
        self.attention = attention(config.attention, d)
        self.looks_first = config.attention == "none" or config.order == "bahdanau"
        self.feeds = self.looks_first or bool(config.input_feeding)
        self.feeds_context = not self.looks_first and config.input_feeding == "context"
        self.cells = CellStack(
            config.cell, config.d_embed, d if self.feeds else 0, d, config.n_layers, config.dropout
        )
        self.bridge = Linear(d, d * self.cells.n_states)
        self.combine = Linear(2 * d, d) if config.combine == "concat" else None
        self.dropout = Dropout(config.dropout)
        tied = config.tie_embeddings and config.d_embed == d
        self.output = None if tied else Linear(d, widths.target["vocab"], bias=False)
        self.output_bias = nn.Parameter(torch.empty(widths.target["vocab"]))
        self.copying = Copying(d) if config.copies else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.output_bias)

    def forward(
        self,
        inputs: Inputs,
        target_BT: Tensor,
        keep_BT: Tensor | None = None,
        head: heads.Head = heads.logits,
    ) -> Tensor:
        """The `head` of the attentional vectors at the kept target positions, laid end to end (N)."""
        return self.decode(self.start(inputs), target_BT, keep_BT, head)

    def decode(self, state: RNNState, target_BT: Tensor, keep_BT: Tensor | None, head: heads.Head) -> Tensor:
        """The same from the state before the first token."""
        gates_BTG = self.cells.enter(self.embed_target(target_BT, positions_like(target_BT)))
        if self.feeds:
            vectors = []
            for gates_BG in gates_BTG.unbind(1):
                state = self._advance(gates_BG, state)
                vectors.append(state.fed_BD)
            fed_BTD = torch.stack(vectors, dim=1)
        else:
            fed_BTD = self._unfed(gates_BTG, state)
        copied = None if self.copying is None else self.copying(fed_BTD, state.source)
        out = heads.HeadInput(fed_BTD.flatten(0, 1), self.output_weight, self.output_bias, copied)
        out = out if keep_BT is None else out.at(keep_BT.flatten())
        return head(replace(out, hidden_ND=self.dropout(out.hidden_ND)))

    @property
    def output_weight(self) -> Tensor:
        return self.embed_target.weight if self.output is None else self.output.weight

    def encode(self, inputs: Inputs) -> Encoded:
        """The states of the source, and the last one as their summary."""
        assert self.encoder is not None
        embed = self.embed_target if self.embed_source is None else self.embed_source
        x_BKD = embed(inputs["ids"], positions_like(inputs["ids"]))
        states_BKD, final_BD = self.encoder(x_BKD, inputs["lengths"])
        return Encoded(states_BKD, inputs["lengths"], summary_RD=final_BD)

    def start(self, inputs: Inputs) -> RNNState:
        return self.begin(self.encode(inputs), inputs["ids"])

    def begin(self, encoded: Encoded, source_BK: Tensor | None = None) -> RNNState:
        """The state before the first token, over encoded sources; `source_BK` is what could be copied."""
        final_BD = encoded.summary_RD
        assert final_BD is not None
        states = (
            None if self.attention is None else self.attention.project_kv(self.dropout(encoded.states_RTD))
        )
        memory = Memory(states, encoded.lengths_R, final_BD)
        layers = self.cells.start(torch.tanh(self.bridge(final_BD)))
        project = OutputProjection(self.output_weight, self.output_bias)
        source = None
        if self.copying is not None:
            assert source_BK is not None
            source = self.copying.project_source(encoded, source_BK)
        zeros_BD = torch.zeros_like(final_BD)
        context_BD = zeros_BD if self.feeds_context else None
        return RNNState(memory, layers, zeros_BD, context_BD, project, source)

    def step(self, last_B: Tensor, state: RNNState) -> tuple[Tensor, RNNState]:
        last_B1 = last_B[:, None]
        gates_BG = self.cells.enter(self.embed_target(last_B1, positions_like(last_B1)).squeeze(1))
        state = self._advance(gates_BG, state)
        logits_BV = (state.project or OutputProjection(self.output_weight, self.output_bias))(state.fed_BD)
        if self.copying is None:
            return logits_BV, state
        return heads.with_copies(logits_BV, self.copying(state.fed_BD[:, None], state.source)), state

    def select(self, state: RNNState, rows_B: Tensor, sources_B: Tensor | None = None) -> RNNState:
        layers = tuple(tuple(part[rows_B] for part in layer) for layer in state.layers)
        context_BD = None if state.context_BD is None else state.context_BD[rows_B]
        state = replace(state, layers=layers, fed_BD=state.fed_BD[rows_B], context_BD=context_BD)
        if sources_B is None:
            return state
        source = None if state.source is None else state.source.select(sources_B)
        return replace(state, memory=state.memory.select(sources_B), source=source)

    def _advance(self, gates_BG: Tensor, state: RNNState) -> RNNState:
        """One step in the configured order; the new state's `fed_BD` is the attentional vector."""
        if self.looks_first:
            context_BD = self._look(state.layers[-1][0][:, None], state.memory).squeeze(1)
            layers = self.cells(gates_BG, context_BD, state.layers)
        else:
            extra_BD = state.context_BD if self.feeds_context else state.fed_BD if self.feeds else None
            layers = self.cells(gates_BG, extra_BD, state.layers)
            context_BD = self._look(layers[-1][0][:, None], state.memory).squeeze(1)
        fed_BD = self._combine(layers[-1][0], context_BD)
        kept_BD = context_BD if self.feeds_context else None
        return replace(state, layers=layers, fed_BD=fed_BD, context_BD=kept_BD)

    def _unfed(self, gates_BTG: Tensor, state: RNNState) -> Tensor:
        """Luong's order without input feeding: no context enters a step, so all steps attend at once."""
        layers, tops = state.layers, []
        for gates_BG in gates_BTG.unbind(1):
            layers = self.cells(gates_BG, None, layers)
            tops.append(layers[-1][0])
        tops_BTD = torch.stack(tops, dim=1)
        return self._combine(tops_BTD, self._look(tops_BTD, state.memory))

    def _look(self, query_BQD: Tensor, memory: Memory) -> Tensor:
        if self.attention is None:
            beams = query_BQD.shape[0] // memory.summary_BD.shape[0]
            return memory.summary_BD.repeat_interleave(beams, dim=0)[:, None]
        context_BQD: Tensor = self.attention(query_BQD, memory.states, mask=padding(memory.lengths_B))
        return context_BQD

    def _combine(self, h: Tensor, context: Tensor) -> Tensor:
        if self.combine is None:
            return h + context
        return torch.tanh(self.combine(torch.cat([h, context], dim=-1)))
