"""An encoder of speech: frames are subsampled to states of 40 ms, which Transformer or Conformer layers read.

With `chunk`, a state attends to its own chunk and to `left_chunks` before it. All that a chunk needs of the
past are then caches of a fixed size, and reading chunk by chunk (`start`, `step`) gives the states of reading
the whole recording under the same mask. Trained with `mixed`, one model does both: it learns half of its
batches whole, and half in chunks.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.attention import Growing, Rotary, chunk, padding
from regard.fields.axis import Axis
from regard.layers.block import Block, BlockConfig
from regard.layers.conformer import Conformer, ConformerCache
from regard.layers.dropout import Dropout
from regard.layers.feedforward import Activation
from regard.layers.inputs import Encoded, Inputs
from regard.layers.sound import SUBSAMPLING, Context, LookAhead, NormaliseFrames, Subsample
from regard.models.encoders.encoder import EncoderSettings
from regard.models.widths import Width

STATE_MS = 40
"""Milliseconds of a state."""
FAR = 8192
"""States after which positions are counted anew, so that they stay exact for hours."""


class SpeechConfig(BlockConfig, EncoderSettings):
    kind: Literal["speech"] = "speech"
    reads: ClassVar[str] = "frames"
    block: Literal["transformer", "conformer"] = Field(
        "transformer", description="conformer: with a convolution in every layer, slower and often better"
    )
    kernel: int = Field(15, ge=1, le=256, description="states that a Conformer's convolution looks back on")
    d_stem: int = Field(32, ge=1, description="channels of the convolutions that subsample")
    chunk: int | None = Field(
        8, ge=1, le=1000, description="states of 40 ms that are heard at once, 8: 320 ms; none: all of them"
    )
    left_chunks: int = Field(12, ge=0, le=10_000, description="chunks before it that a state attends to")
    look_ahead: int = Field(0, ge=0, le=100, description="states beyond its own that a state waits for")
    mixed: bool = Field(
        True, description="learn whole recordings too, and answer so where nothing is streamed"
    )
    d_model: int = Field(144, ge=1)
    n_heads: int = Field(4, ge=1)
    n_kv_heads: None = None
    reach: None = Field(None, description="speech is heard in chunks already: chunk and left_chunks")
    d_ff: int = Field(576, ge=1)
    n_layers: int = Field(6, ge=1, le=512)
    activation: Activation = "gelu"
    norm: Literal["pre"] = "pre"
    position: Literal["rotary", "relative", "alibi", "none"] = "rotary"
    dropout: float = Field(0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _one_chunk_or_more(self) -> Self:
        if self.chunk is None and self.look_ahead:
            raise ValueError("look_ahead is for chunks, and there are none (chunk); set it to 0")
        return self

    @property
    def d_out(self) -> int:
        return self.d_model

    def build(self, width: Width) -> "Speech":
        return Speech(self, width)

    def positions(self, axis: Axis) -> Axis:
        """The states, of four frames each; frames at the end that fill none are not read."""
        n = len(axis) // SUBSAMPLING
        return axis.covered([(SUBSAMPLING * at, SUBSAMPLING * (at + 1)) for at in range(n)], "frame")


@dataclass(frozen=True)
class Heard:
    """What an encoder needs of the frames before a chunk: the same size at any time."""

    frames: Context
    waiting_BTD: Tensor
    """Subsampled states whose future is not known yet."""
    caches: tuple[Any, ...] | None
    position: int

    def select(self, rows_B: Tensor) -> "Heard":
        caches = None if self.caches is None else tuple(_selected(cache, rows_B) for cache in self.caches)
        frames = Context(*(tensor[rows_B] for tensor in self.frames))
        return Heard(frames, self.waiting_BTD[rows_B], caches, self.position)


class Speech(nn.Module):
    def __init__(self, config: SpeechConfig, width: Width) -> None:
        super().__init__()
        self.config = config
        self.normalise = NormaliseFrames(width["mean"], width["deviation"])
        self.subsample = Subsample(width["mels"], config.d_stem, config.d_model)
        self.look_ahead = LookAhead(config.look_ahead, config.d_model) if config.look_ahead else None
        self.dropout = Dropout(config.dropout)
        is_conformer = config.block == "conformer"
        self.layers = nn.ModuleList(
            Conformer(config, config.kernel) if is_conformer else Block(config, causal=False, cross=False)
            for _ in range(config.n_layers)
        )
        self.norm = nn.LayerNorm(config.d_model, config.norm_eps)

    def forward(self, inputs: Inputs) -> Encoded:
        """States of whole recordings; in chunks where the inputs say so, or nothing else was learnt."""
        frames_BTM, lengths_B = self.normalise(inputs["frames"]), inputs["lengths"] // SUBSAMPLING
        x_BTD, _ = self.subsample(frames_BTM, self.subsample.start(len(frames_BTM), frames_BTM))
        if self.look_ahead is not None:
            every_T = torch.arange(x_BTD.shape[1], device=x_BTD.device)
            x_BTD = torch.where((every_T < lengths_B[:, None])[..., None], x_BTD, 0.0)
            x_BTD = self.look_ahead(torch.cat([x_BTD, x_BTD.new_zeros(*self._no_future(len(x_BTD)))], 1))
        mask = padding(lengths_B)
        if (size := self._chunk(inputs)) is not None:
            mask = mask & chunk(size, self.config.left_chunks)
        x_BTD = self.dropout(x_BTD)
        for layer in self.layers:
            x_BTD, _ = layer(x_BTD, mask=mask)
        return Encoded(self.norm(x_BTD), lengths_B)

    def _chunk(self, inputs: Inputs) -> int | None:
        config = self.config
        if config.chunk is None or not config.mixed:
            return config.chunk
        if self.training:
            return config.chunk if torch.rand(()) < 0.5 else None
        return config.chunk if "streamed" in inputs else None

    def _no_future(self, n_batch: int) -> tuple[int, int, int]:
        return n_batch, self.config.look_ahead, self.config.d_model

    def n_frames(self, heard: Heard) -> int:
        """Frames that the next chunk needs."""
        assert self.config.chunk is not None
        first = self.config.look_ahead if heard.position == 0 and heard.caches is None else 0
        return SUBSAMPLING * (self.config.chunk + first)

    def start(self, n_batch: int) -> Heard:
        """Nothing heard yet."""
        like = self.norm.weight
        waiting_BTD = like.new_zeros(n_batch, 0, self.config.d_model)
        return Heard(self.subsample.start(n_batch, like), waiting_BTD, None, 0)

    def step(self, frames_BTM: Tensor, heard: Heard, *, last: bool = False) -> tuple[Tensor, Heard]:
        """States of the next chunk, of as many frames as it needs; the last may have fewer."""
        x_BTD, context = self.subsample(self.normalise(frames_BTM), heard.frames)
        x_BTD = torch.cat([heard.waiting_BTD, x_BTD], 1)
        waiting_BTD = x_BTD[:, x_BTD.shape[1] - self.config.look_ahead :]
        if self.look_ahead is not None:
            if last:
                x_BTD = torch.cat([x_BTD, x_BTD.new_zeros(*self._no_future(len(x_BTD)))], 1)
            x_BTD = self.look_ahead(x_BTD)
        heard, states = replace(heard, frames=context, waiting_BTD=waiting_BTD), [x_BTD[:, :0]]
        assert self.config.chunk is not None
        for begin in range(0, x_BTD.shape[1], self.config.chunk):  # two at the end, where the future is known
            states_BTD, heard = self._read(x_BTD[:, begin : begin + self.config.chunk], heard)
            states.append(states_BTD)
        return torch.cat(states, 1), heard

    def _read(self, x_BTD: Tensor, heard: Heard) -> tuple[Tensor, Heard]:
        """The states of one chunk."""
        n_states = x_BTD.shape[1]
        positions_1T = torch.arange(heard.position, heard.position + n_states, device=x_BTD.device)[None]
        caches = []
        for number, layer in enumerate(self.layers):
            past = None if heard.caches is None else heard.caches[number]
            x_BTD, cache = layer(x_BTD, positions_BT=positions_1T, past=past)
            caches.append(self._kept(cache))
        following = replace(heard, caches=tuple(caches), position=heard.position + n_states)
        return self.norm(x_BTD), self._counted_anew(following)

    def _kept(self, cache: Any) -> Any:
        """As much of a layer's past as the next chunk attends to."""
        if isinstance(cache, ConformerCache):
            return cache._replace(attention=self._kept(cache.attention))
        assert self.config.chunk is not None
        n = max(0, cache.k_BGKE.shape[2] - self.config.left_chunks * self.config.chunk)
        return Growing(cache.k_BGKE[:, :, n:], cache.v_BGKW[:, :, n:], cache.positions_BK[:, n:])

    def _counted_anew(self, heard: Heard) -> Heard:
        """The same where positions are small again: only distances matter."""
        if heard.position < FAR or heard.caches is None:
            return heard
        assert self.config.chunk is not None
        back = heard.position - self.config.left_chunks * self.config.chunk
        caches = []
        for layer, cache in zip(self.layers, heard.caches, strict=True):
            assert isinstance(layer, Block | Conformer)
            caches.append(_moved(cache, back, layer.self.rotary))
        return replace(heard, caches=tuple(caches), position=heard.position - back)


def _moved(cache: Any, back: int, rotary: Rotary | None) -> Any:
    """A cache whose positions are smaller by so many."""
    if isinstance(cache, ConformerCache):
        return cache._replace(attention=_moved(cache.attention, back, rotary))
    positions_BK, k_BGKE = cache.positions_BK - back, cache.k_BGKE
    if rotary is not None:
        k_BGKE = rotary(k_BGKE, torch.full_like(positions_BK, -back))
    return Growing(k_BGKE, cache.v_BGKW, positions_BK)


def _selected(cache: Any, rows_B: Tensor) -> Any:
    if isinstance(cache, ConformerCache):
        return ConformerCache(_selected(cache.attention, rows_B), cache.convolved_BTD[rows_B])
    return cache.select(rows_B)
