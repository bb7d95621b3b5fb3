"""A decoder step with fused projections and no module calls: `Embed` and `Stack` in a third of the calls.

On a CPU a step over a few rows is calls, not arithmetic. Here matrices with the same input lie side by side,
the mask of the memory is made once for all steps, and no module stands between two products. The modules
themselves run where this cannot: positions inside attention, a graph to be exported, a tap, a hook, a module
of another type.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Attention, Growing, Learned, ScaledDot, Sinusoidal, Static
from regard.attention.tap import Site
from regard.layers.block import Block
from regard.layers.cpu import enabled
from regard.layers.dropout import Dropout
from regard.layers.embed import Embed
from regard.layers.feedforward import FeedForward
from regard.layers.stack import Stack
from regard.linear import Linear, concat_weights

Affine = tuple[Tensor, Tensor | None]
FUSED_MODULES = {
    Embed,
    Sinusoidal,
    Learned,
    Stack,
    nn.ModuleList,
    Block,
    Attention,
    ScaledDot,
    FeedForward,
    Linear,
    nn.LayerNorm,
    Dropout,
}
FIRST_POSITIONS = 128
"""Position vectors computed at first."""


@dataclass(frozen=True, slots=True)
class _Norm:
    shape: tuple[int, ...]
    weight: Tensor
    bias: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class _Layer:
    def __init__(self, block: Block) -> None:
        attention, cross, cross_norm, ff = block.self, block.cross, block.cross_norm, block.ff
        assert cross is not None
        assert cross_norm is not None
        self.pre, self.n_heads, self.n_kv_heads = block.pre, attention.n_heads, attention.n_kv_heads
        self.gqa = self.n_kv_heads != self.n_heads
        self.norms = [_norm(norm) for norm in (block.self_norm, cross_norm, block.ff_norm)]
        qkv = [part for part in (attention.q, attention.k, attention.v) if part is not None]
        self.qkv, self.widths = concat_weights(qkv), [part.d_out for part in qkv]
        self.self_out, self.cross_q, self.cross_out = map(_affine, (attention.o, cross.q, cross.o))
        inner = [part for part in (ff.inner, ff.gate) if part is not None]
        self.inner, self.n_inner = concat_weights(inner), len(inner)
        self.activate, self.outer = ff.activate, _affine(ff.outer)

    def __call__(
        self, x_BD: Tensor, past: Growing | None, memory: Static, memory_bias_B11K: Tensor | None
    ) -> tuple[Tensor, Growing]:
        first, second, third = self.norms
        attended_BD, cache = self._self_attend(self._norm_before(x_BD, first), past)
        x_BD = self._norm_after(x_BD, attended_BD, first)
        x_BD = self._norm_after(
            x_BD, self._cross_attend(self._norm_before(x_BD, second), memory, memory_bias_B11K), second
        )
        return self._norm_after(x_BD, self._feed_forward(self._norm_before(x_BD, third)), third), cache

    def _norm_before(self, x: Tensor, norm: _Norm) -> Tensor:
        return norm(x) if self.pre else x

    def _norm_after(self, x: Tensor, out: Tensor, norm: _Norm) -> Tensor:
        return x + out if self.pre else norm(x + out)

    def _self_attend(self, x_BD: Tensor, past: Growing | None) -> tuple[Tensor, Growing]:
        rows = len(x_BD)
        q_BD, k_BD, v_BD = torch.split_with_sizes(F.linear(x_BD, *self.qkv), self.widths, dim=-1)
        new = Growing(k_BD.view(rows, self.n_kv_heads, 1, -1), v_BD.view(rows, self.n_kv_heads, 1, -1))
        cache = new if past is None else past.append(new)
        q_BH1E = q_BD.view(rows, self.n_heads, 1, -1)
        out_BH1E = F.scaled_dot_product_attention(q_BH1E, cache.k_BGKE, cache.v_BGKW, enable_gqa=self.gqa)
        return F.linear(out_BH1E.reshape(rows, -1), *self.self_out), cache

    def _cross_attend(self, x_BD: Tensor, memory: Static, memory_bias_B11K: Tensor | None) -> Tensor:
        """The beams of a source are its queries, side by side."""
        rows, sources = len(x_BD), len(memory.k_BGKE)
        q_BD = F.linear(x_BD, *self.cross_q)
        out = F.scaled_dot_product_attention(
            q_BD.view(sources, rows // sources, self.n_heads, -1).transpose(1, 2),
            memory.k_BGKE,
            memory.v_BGKW,
            attn_mask=memory_bias_B11K,
            enable_gqa=self.gqa,
        )
        return F.linear(out.transpose(1, 2).reshape(rows, -1), *self.cross_out)

    def _feed_forward(self, x_BD: Tensor) -> Tensor:
        inner = F.linear(x_BD, *self.inner).chunk(self.n_inner, dim=-1)
        return F.linear(self.activate(*inner), *self.outer)


class FusedStep:
    """Steps a decoder; made by `of` where that is possible."""

    def __init__(self, embed: Embed, stack: Stack) -> None:
        self._embed, self._weight, self._position = embed, embed.weight, embed.position
        self._layers = [_Layer(block) for block in _blocks(stack)]
        self._norm = None if stack.norm is None else _norm(stack.norm)
        self._sites = [module for module in stack.modules() if isinstance(module, Site)]
        self._positions_TD: Tensor | None = None

    @classmethod
    def of(cls, embed: Embed, stack: Stack) -> "FusedStep | None":
        modules = (*embed.modules(), *stack.modules())
        if (
            not enabled()
            or stack.training
            or torch.compiler.is_compiling()
            or not all(map(_is_unchanged, modules))
        ):
            return None
        return cls(embed, stack)

    @property
    def is_tapped(self) -> bool:
        return any(site.tap is not None for site in self._sites)

    def __call__(
        self,
        last_B: Tensor,
        past: Sequence[Growing] | None,
        memory: Sequence[Static],
        memory_bias_B11K: Tensor | None,
    ) -> tuple[Tensor, tuple[Growing, ...]]:
        """The last layer's states, and every layer's keys and values."""
        x_BD = F.embedding(last_B, self._weight) * self._embed.scale
        if self._position is not None:
            x_BD = x_BD + self._position_vector(0 if past is None else past[0].k_BGKE.shape[2])
        grown = []
        for i, layer in enumerate(self._layers):
            x_BD, cache = layer(x_BD, None if past is None else past[i], memory[i], memory_bias_B11K)
            grown.append(cache)
        return (x_BD if self._norm is None else self._norm(x_BD)), tuple(grown)

    def _position_vector(self, position: int) -> Tensor:
        if isinstance(self._position, Learned):
            return self._position.weight[position]
        assert self._position is not None
        if self._positions_TD is None or position >= len(self._positions_TD):
            positions_T = torch.arange(max(FIRST_POSITIONS, 2 * position), device=self._weight.device)
            self._positions_TD = self._position(positions_T)
        return self._positions_TD[position]


def padding_bias(lengths_B: Tensor, n_keys: int, dtype: torch.dtype) -> Tensor | None:
    """The additive mask of a memory: −∞ at padding; None where no row has any."""
    padded_BK = torch.arange(n_keys, device=lengths_B.device) >= lengths_B[:, None]
    if not bool(padded_BK.any()):
        return None
    zeros = torch.zeros(padded_BK.shape, dtype=dtype, device=lengths_B.device)
    return zeros.masked_fill_(padded_BK, -torch.inf)[:, None, None]


def _is_unchanged(module: nn.Module) -> bool:
    """True if the module computes what is written out here, and nothing else."""
    if type(module) not in FUSED_MODULES or "forward" in vars(module):
        return False
    if module._forward_hooks or module._forward_pre_hooks:
        return False
    return not isinstance(module, Attention) or (module.rotary, module.distance, module.reach) == (
        None,
        None,
        None,
    )


def _blocks(stack: Stack) -> Iterator[Block]:
    for layer in stack.layers:
        assert isinstance(layer, Block)
        yield layer


def _affine(linear: Linear | None) -> Affine:
    assert linear is not None
    return linear.weight, linear.bias


def _norm(norm: nn.LayerNorm) -> _Norm:
    return _Norm(norm.normalized_shape, norm.weight, norm.bias, norm.eps)
