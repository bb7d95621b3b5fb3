"""Scaled dot-product attention over few keys on a CPU: one head after another, in plain matrix products.

torch's fused kernel is made for long rows; on sentences it spends its time on nearly empty blocks. Here a
head's rows are read in place, where a product over all heads would copy them. Each head's map is kept for the
backward pass; with few keys that is linear in length too.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.cpu import enabled

MAX_KEYS, MIN_ROWS = 32, 1024
"""The sizes at which this is faster, forward and backward (bench/attention_speed.py)."""
MAX_KEYS_BFLOAT16 = 256
"""The same in bfloat16 where nothing is masked: torch's kernel is slow at its backward pass."""


def has_few_keys(q_BHQE: Tensor, n_keys: int, *, masked: bool) -> bool:
    """True where `attend_few_keys` is the faster kernel."""
    rows = q_BHQE.shape[0] * q_BHQE.shape[2]
    most = MAX_KEYS_BFLOAT16 if q_BHQE.dtype == torch.bfloat16 and not masked else MAX_KEYS
    return enabled() and n_keys <= most and rows >= MIN_ROWS and q_BHQE.device.type == "cpu"


def attend_few_keys(
    q_BHQE: Tensor, k_BGKE: Tensor, v_BGKW: Tensor, scale: float, keep_B1QK: Tensor | None
) -> Tensor:
    """Scaled dot-product attention. `keep_B1QK` broadcasts along B and Q; each row must keep a key."""
    mask_BQK = None
    if keep_B1QK is not None:
        mask_BQK = torch.zeros(keep_B1QK.shape, dtype=q_BHQE.dtype).masked_fill_(~keep_B1QK, -torch.inf)
        mask_BQK = mask_BQK[:, 0].expand(q_BHQE.shape[0], q_BHQE.shape[2], -1)
    out: Tensor = _AttendByHead.apply(q_BHQE, k_BGKE, v_BGKW, scale, mask_BQK)  # type: ignore[no-untyped-call]
    return out


class _AttendByHead(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q_BHQE: Tensor, k_BGKE: Tensor, v_BGKW: Tensor, scale: float, mask_BQK: Tensor | None
    ) -> Tensor:
        n_batch, n_heads, n_queries, _ = q_BHQE.shape
        ctx.scale, ctx.group = scale, n_heads // k_BGKE.shape[1]
        width = v_BGKW.shape[3]
        out_BQHW = q_BHQE.new_empty(n_batch, n_queries, n_heads, width)  # as the next product reads it
        maps = []
        for head in range(n_heads):
            weights_BQK = _weights(q_BHQE[:, head], k_BGKE[:, head // ctx.group], scale, mask_BQK)
            out_BQHW[:, :, head] = weights_BQK @ v_BGKW[:, head // ctx.group]
            maps.append(weights_BQK)
        ctx.save_for_backward(q_BHQE, k_BGKE, v_BGKW, *maps)
        return out_BQHW.transpose(1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out_BHQW: Tensor) -> tuple[Tensor | None, ...]:
        q_BHQE, k_BGKE, v_BGKW, *maps = ctx.saved_tensors
        if d_out_BHQW.stride(-1) != 1:  # scattered rows would be copied one by one
            d_out_BHQW = d_out_BHQW.contiguous()
        d_q, d_k, d_v = (_like(x) for x in (q_BHQE, k_BGKE, v_BGKW))
        for head, weights in enumerate(maps):
            kv_head, first = head // ctx.group, head % ctx.group == 0
            q, k, v, d_out = q_BHQE[:, head], k_BGKE[:, kv_head], v_BGKW[:, kv_head], d_out_BHQW[:, head]
            d_weights = d_out @ v.transpose(1, 2)
            d_scores = torch._softmax_backward_data(d_weights, weights, -1, q.dtype).mul_(ctx.scale)
            d_q[:, head] = d_scores @ k
            for total, part in (
                (d_k[:, kv_head], d_scores.transpose(1, 2) @ q),
                (d_v[:, kv_head], weights.transpose(1, 2) @ d_out),
            ):
                total.copy_(part) if first else total.add_(part)
        return d_q, d_k, d_v, None, None


def _weights(q_BQE: Tensor, k_BKE: Tensor, scale: float, mask_BQK: Tensor | None) -> Tensor:
    """The attention weights of one head."""
    k_BEK = k_BKE.transpose(1, 2)
    if mask_BQK is None:
        scores_BQK = (q_BQE @ k_BEK).mul_(scale)
    else:
        scores_BQK = torch.baddbmm(mask_BQK, q_BQE, k_BEK, alpha=scale)
    return torch.softmax(scores_BQK, dim=-1)


def _like(x_BHTE: Tensor) -> Tensor:
    """An empty tensor laid out as projections are: heads beside each other at every position."""
    n_batch, n_heads, length, width = x_BHTE.shape
    return x_BHTE.new_empty(n_batch, length, n_heads, width).transpose(1, 2)
