"""One layer of a Transformer: self-attention, perhaps attention to a memory, feed-forward.

Each sub-layer is wrapped as LayerNorm(x + f(x)) ("post", the paper) or x + f(LayerNorm(x)) ("pre").
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.attention import FULL, ALiBi, Attention, Mask, Past, RelativeBias, Rotary, Static, Unpadded
from regard.config import Config
from regard.layers.dropout import Dropout
from regard.layers.feedforward import Activation, FeedForward
from regard.layers.reach import ReachConfig

Position = Literal["sinusoidal", "learned", "rotary", "relative", "alibi", "none"]


class BlockConfig(Config):
    """Settings of a layer, in any stack; all that a foreign checkpoint may differ in is here."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Named sizes to start from, if the model has any."""

    d_model: int = Field(256, ge=1, description="width of the residual stream")
    n_heads: int = Field(4, ge=1)
    n_kv_heads: int | None = Field(None, ge=1, description="fewer key/value heads: grouped-query attention")
    d_ff: int = Field(1024, ge=1, description="inner width of the feed-forward network")
    activation: Activation = "relu"
    norm: Literal["post", "pre"] = "post"
    norm_eps: float = Field(1e-5, gt=0)
    bias: bool = True
    position: Position = "sinusoidal"
    max_positions: int = Field(1024, ge=1, description="only learned positions have a limit")
    dropout: float = Field(0.1, ge=0, lt=1, description="on embeddings and sub-layer outputs")
    word_dropout: float = Field(
        0.0, ge=0, lt=1, description="of whole embeddings: hides a word but not its position"
    )
    inner_dropout: float = Field(0.0, ge=0, lt=1, description="after the feed-forward activation")
    attention_dropout: float = Field(
        0.0, ge=0, lt=1, description="> 0 leaves the fused kernel on CPU: slower"
    )
    reach: ReachConfig | None = Field(
        None,
        description="attention over a part of the text only: window, chunks, segments, linear, landmarks",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, settings: Any) -> Any:
        name = settings.get("preset") if isinstance(settings, dict) else None
        preset = cls.presets.get(name) if isinstance(name, str) else None
        return settings if preset is None else {**preset, **settings}

    @model_validator(mode="after")
    def _heads_divide(self) -> "BlockConfig":
        if self.d_model % self.n_heads:
            raise ValueError(f"n_heads ({self.n_heads}) must divide d_model ({self.d_model})")
        if self.n_kv_heads is not None and self.n_heads % self.n_kv_heads:
            raise ValueError(f"n_kv_heads ({self.n_kv_heads}) must divide n_heads ({self.n_heads})")
        if self.position == "rotary" and (self.d_model // self.n_heads) % 2:
            raise ValueError(
                "rotary positions need an even head width, "
                f"not d_model / n_heads = {self.d_model // self.n_heads}"
            )
        if self.reach is not None:
            self._reach_fits(self.reach)
        return self

    def _reach_fits(self, reach: ReachConfig) -> None:
        fault = reach.fault(self.position)
        if fault is not None:
            raise ValueError(f"reach: position = {self.position!r} does not go with {reach}: {fault}")
        if self.attention_dropout and reach.kind == "linear":
            raise ValueError(
                "reach: linear attention has no weights to drop; "
                f"set attention_dropout ({self.attention_dropout}) to 0"
            )

    def attention(self, *, causal: bool = False, positioned: bool = True) -> Attention:
        """A self-attention (or, not positioned, an attention to a memory) of this layer."""
        rotary = Rotary(self.d_model // self.n_heads) if positioned and self.position == "rotary" else None
        distance: RelativeBias | ALiBi | None = None
        if positioned and self.position == "relative":
            distance = RelativeBias(self.n_heads, causal=causal)
        if positioned and self.position == "alibi":
            distance = ALiBi(self.n_heads)
        return Attention(
            self.d_model,
            n_heads=self.n_heads,
            n_kv_heads=self.n_kv_heads,
            bias=self.bias,
            rotary=rotary,
            distance=distance,
            dropout=self.attention_dropout,
            reach=self.reach.build(causal=causal) if positioned and self.reach is not None else None,
        )


class Block(nn.Module):
    def __init__(self, config: BlockConfig, *, causal: bool, cross: bool) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.self = config.attention(causal=causal)
        self.self_norm = nn.LayerNorm(config.d_model, config.norm_eps)
        self.cross = config.attention(positioned=False) if cross else None
        self.cross_norm = nn.LayerNorm(config.d_model, config.norm_eps) if cross else None
        self.ff = FeedForward(
            config.d_model, config.d_ff, config.activation, config.inner_dropout, bias=config.bias
        )
        self.ff_norm = nn.LayerNorm(config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        x_BTD: Tensor,
        *,
        mask: Mask = FULL,
        positions_BT: Tensor | None = None,
        past: Past | None = None,
        memory: Static | None = None,
        memory_mask: Mask = FULL,
        unpadded: Unpadded | None = None,
    ) -> tuple[Tensor, Past]:
        """The new residual stream, and this layer's keys and values so far (for the next step)."""
        cache = past

        def attend_self(x: Tensor) -> Tensor:
            nonlocal cache
            out, cache = self.self.self_attend(
                x, past, mask=mask, positions_BT=positions_BT, unpadded=unpadded
            )
            return out

        x_BTD = self._wrap(x_BTD, attend_self, self.self_norm)
        if self.cross is not None and self.cross_norm is not None:
            cross = self.cross
            x_BTD = self._wrap(x_BTD, lambda x: cross(x, memory, mask=memory_mask), self.cross_norm)
        assert cache is not None
        return self._wrap(x_BTD, self.ff, self.ff_norm), cache

    def project_kv(self, memory_BKD: Tensor, *, unpadded: Unpadded | None = None) -> Static:
        """The keys and values of the memory, for this layer's cross-attention."""
        assert self.cross is not None
        return self.cross.project_kv(memory_BKD, unpadded=unpadded)

    def _wrap(self, x: Tensor, f: Callable[[Tensor], Tensor], norm: nn.LayerNorm) -> Tensor:
        out: Tensor = x + self.dropout(f(norm(x))) if self.pre else norm(x + self.dropout(f(x)))
        return out
