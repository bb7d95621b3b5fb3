"""GPT: a decoder without an encoder, a model of the next token (Radford et al. 2018, 2019).

The defaults are GPT-2's: pre-norm, GELU, learned positions, an output tied to the embeddings; rotary and
other positions are a choice of the config. One difference: no dropout on attention weights, which would
forbid the fused kernel.

Texts of a batch are padded on the right, so that the padding is in nobody's past; a mask says to later
steps which keys are real. When a row has read as much as it may (`limit`), its older half is forgotten and
the rest is read again from position 0, as if the text had begun there: so it can be continued for ever.

Attention with a reach of its own (`model.reach`: windows, chunks, linear …) needs no such reading again,
unless positions are learned and so end somewhere: a cache keeps what a later token can still see, and no
more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.attention import FULL, Mask, Past, causal, only_keys
from regard.layers import heads
from regard.layers.block import BlockConfig, Position
from regard.layers.cpu.output_projection import OutputProjection
from regard.layers.feedforward import Activation
from regard.layers.stack import Stack, embedding, positions_like
from regard.linear import Linear
from regard.models.settings import ModelSettings
from regard.models.widths import Widths

CAUSAL = causal()


def _sizes(d_model: int, n_heads: int, n_layers: int) -> dict[str, int]:
    return {"d_model": d_model, "n_heads": n_heads, "d_ff": 4 * d_model, "n_layers": n_layers}


PRESETS: dict[str, dict[str, int]] = {
    "tiny": _sizes(128, 4, 4),
    "mini": _sizes(256, 8, 6),
    "small": _sizes(384, 6, 6),
    "base": _sizes(768, 12, 12),
}


class GPTConfig(BlockConfig, ModelSettings):
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    reads_answer: ClassVar[bool] = True
    kind: Literal["gpt"] = "gpt"
    init_from: str | None = Field(
        None, description="a language model's run, or a GPT-2 of Hugging Face, to start from"
    )
    preset: Literal["tiny", "mini", "small", "base"] | None = Field(
        None, description="sizes to start from; fields given beside it win (base is GPT-2's)"
    )
    d_model: int = Field(128, ge=1, description="width of the residual stream")
    d_ff: int = Field(512, ge=1, description="inner width of the feed-forward network")
    n_layers: int = Field(4, ge=1, le=512)
    activation: Activation = "gelu_tanh"
    norm: Literal["post", "pre"] = "pre"
    position: Position = "learned"
    tie_embeddings: bool = True

    def build(self, widths: Widths) -> "GPT":
        return GPT(self, widths)

    def __str__(self) -> str:
        begun = f"gpt from {Path(self.init_from).name}," if self.init_from else "gpt"
        if self.init_from and "d_model" not in self.model_fields_set:  # which has yet to be read
            return begun.removesuffix(",")
        sizes = f"{begun} {self.n_layers} layers, d={self.d_model}, {self.n_heads} heads"
        return sizes if self.reach is None else f"{sizes}, {self.reach}"


@dataclass(frozen=True)
class GPTState:
    """The texts read so far and their key-value caches: a slot per key, some of them empty."""

    last_B: Tensor | None
    """The last token of every prompt: the first step reads it, whatever it is given to begin with."""
    tokens_BK: Tensor
    keep_BK: Tensor
    """True at slots that hold a real key."""
    n_read_B: Tensor
    """The position of the next token."""
    places_BK: Tensor
    """The position of each slot."""
    limit: int | None
    """Tokens read at most before half of them is forgotten; None if nothing is read again."""
    past: tuple[Past, ...] | None = None
    project: OutputProjection | None = None

    def rows(self, rows_B: Tensor) -> "GPTState":
        return replace(
            self,
            last_B=None if self.last_B is None else self.last_B[rows_B],
            tokens_BK=self.tokens_BK[rows_B],
            keep_BK=self.keep_BK[rows_B],
            places_BK=self.places_BK[rows_B],
            n_read_B=self.n_read_B[rows_B],
            past=None if self.past is None else tuple(cache.select(rows_B) for cache in self.past),
        )

    def slots(self, slots_K: Tensor) -> "GPTState":
        assert self.past is not None
        return replace(
            self,
            tokens_BK=self.tokens_BK[:, slots_K],
            keep_BK=self.keep_BK[:, slots_K],
            places_BK=self.places_BK[:, slots_K],
            past=tuple(cache.slots(slots_K) for cache in self.past),
        )


class GPT(nn.Module):
    def __init__(self, config: GPTConfig, widths: Widths) -> None:
        super().__init__()
        self.embed = embedding(config, widths.target["vocab"], scale=False)
        self.stack = Stack(config, config.n_layers, causal=True)
        self.reach = None if config.reach is None else config.reach.build(causal=True)
        self.positions_end = config.position == "learned"
        n_tokens = widths.target["vocab"]
        self.output = None if config.tie_embeddings else Linear(config.d_model, n_tokens, bias=False)

    def forward(
        self, tokens_BT: Tensor, keep_BT: Tensor | None = None, head: heads.Head = heads.logits
    ) -> Tensor:
        """The `head` of the states at the kept positions, laid end to end (N)."""
        hidden_BTD, _ = self._stacked(tokens_BT, positions_like(tokens_BT))
        hidden_ND = hidden_BTD.flatten(0, 1) if keep_BT is None else hidden_BTD[keep_BT]
        return head(heads.HeadInput(hidden_ND, self.output_weight))

    def _stacked(
        self, tokens_BT: Tensor, positions_BT: Tensor, mask: Mask = CAUSAL
    ) -> tuple[Tensor, tuple[Past, ...]]:
        hidden_BTD, past = self.stack(
            self.embed(tokens_BT, positions_BT), mask=mask, positions_BT=positions_BT
        )
        return hidden_BTD, past

    @property
    def output_weight(self) -> Tensor:
        return self.embed.weight if self.output is None else self.output.weight

    def start(self, prompts_BT: Tensor, lengths_B: Tensor, limit: int) -> GPTState:
        """The state before the first step; after `limit` tokens the older half of them is forgotten."""
        last_B = prompts_BT.gather(1, lengths_B[:, None] - 1).squeeze(1)
        tokens_BK, n_read_B = prompts_BT[:, :-1], lengths_B - 1
        places_BK = positions_like(tokens_BK).expand_as(tokens_BK)
        keep_BK = places_BK < n_read_B[:, None]
        state = GPTState(
            last_B,
            tokens_BK,
            keep_BK,
            n_read_B,
            places_BK,
            limit if self.reach is None or self.positions_end else None,
            project=OutputProjection(self.output_weight),
        )
        return replace(state, past=self._read(tokens_BK, keep_BK)) if tokens_BK.shape[1] else state

    def _read(self, tokens_BT: Tensor, keep_BT: Tensor) -> tuple[Past, ...]:
        """Read these texts into a cache. Sums must not hold padding; keys are left out later, one by one."""
        mask = CAUSAL if self.reach is None else CAUSAL & only_keys(keep_BT)
        return self._stacked(tokens_BT, positions_like(tokens_BT).expand_as(tokens_BT), mask)[1]

    def step(self, last_B: Tensor, state: GPTState) -> tuple[Tensor, GPTState]:
        last_B = last_B if state.last_B is None else state.last_B
        if state.limit is None:
            state = self._within_reach(state)
        elif bool((state.n_read_B >= state.limit).any()):
            state = self._with_room(state, state.limit)
        last_B1, positions_B1 = last_B[:, None], state.n_read_B[:, None]
        state = replace(
            state,
            last_B=None,
            tokens_BK=torch.cat([state.tokens_BK, last_B1], dim=1),
            keep_BK=torch.cat([state.keep_BK, torch.ones_like(last_B1, dtype=torch.bool)], dim=1),
            places_BK=torch.cat([state.places_BK, positions_B1], dim=1),
            n_read_B=state.n_read_B + 1,
        )
        hidden_B1D, past = self.stack(
            self.embed(last_B1, positions_B1),
            mask=FULL if bool(state.keep_BK.all()) else only_keys(state.keep_BK),
            positions_BT=positions_B1,
            past=state.past,
        )
        project = state.project or OutputProjection(self.output_weight)
        return project(hidden_B1D.squeeze(1)), replace(state, past=past)

    def select(self, state: GPTState, rows_B: Tensor, sources_B: Tensor | None = None) -> GPTState:
        return state.rows(rows_B)

    def _within_reach(self, state: GPTState) -> GPTState:
        """The state without slots that no row will see again, once they are an eighth of all."""
        if self.reach is None or state.past is None:
            return state
        keep_BK = state.keep_BK & self.reach.lasts(state.n_read_B[:, None], state.places_BK)
        lasting_K = keep_BK.any(dim=0)
        n_slots, n_lasting = len(lasting_K), int(lasting_K.sum())
        if 8 * (n_slots - n_lasting) <= n_slots:
            return state
        return replace(state, keep_BK=keep_BK).slots(lasting_K.nonzero().squeeze(1))

    def _with_room(self, state: GPTState, limit: int) -> GPTState:
        """Rows that are full read the newer half of their text again; the others are left as they are."""
        full_B = state.n_read_B >= limit
        half = limit // 2
        kept_BT = state.tokens_BK[full_B][state.keep_BK[full_B]].view(int(full_B.sum()), -1)[:, -half:]
        keep_BK, tokens_BK = state.keep_BK.clone(), state.tokens_BK.clone()
        places_BK = state.places_BK.clone()
        keep_BK[full_B], tokens_BK[full_B, :half] = False, kept_BT
        keep_BK[full_B, :half], places_BK[full_B, :half] = True, positions_like(kept_BT)
        assert state.past is not None
        again = self._read(kept_BT, torch.ones_like(kept_BT, dtype=torch.bool))
        past = tuple(cache.written_over(read, full_B) for cache, read in zip(state.past, again, strict=True))
        n_read_B = state.n_read_B.masked_fill(full_B, half)
        state = replace(
            state, tokens_BK=tokens_BK, keep_BK=keep_BK, places_BK=places_BK, n_read_B=n_read_B, past=past
        )
        return state.slots(keep_BK.any(dim=0).nonzero().squeeze(1))
