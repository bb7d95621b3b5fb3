"""attend(): the only way to a softmax over keys that can be tapped.

While nobody taps, the decoder steps of layers/cpu/fused_step.py call the fused kernel directly.

`attend` is fused when nobody taps and the score is a dot product: scaled_dot_product_attention or, for few
keys on a CPU, `attend_few_keys`. Otherwise it is explicit. All give the same numbers. Inputs that a fused
kernel cannot take whole (a dense mask, a bias) run in tiles of query rows, so that memory stays linear in
length; tiles are recomputed in the backward pass.

Rows that may attend to nothing give zeros. They are un-masked before the softmax and multiplied by zero
after it: −inf everywhere would pass tests of values but puts NaN into the backward pass.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from regard.attention.cpu.small_kernel import attend_few_keys, has_few_keys
from regard.attention.mask import FULL, Mask, Rows
from regard.attention.score import ScaledDot, Score
from regard.attention.tap import Tap

Bias = Callable[[Rows], Tensor]
"""The additive scores (B or 1, H, Q, K) of some query rows."""

SCALED_DOT = ScaledDot()
TILE_ELEMENTS = 1 << 22
"""Elements of a Q×K tensor made at once at most: 16 MB of float32."""


def attend(
    q_BHQE: Tensor,
    k_BGKE: Tensor,
    v_BGKW: Tensor,
    *,
    score: Score = SCALED_DOT,
    mask: Mask = FULL,
    bias: Bias | None = None,
    tap: Tap | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """out_BHQW: for each query the mean of the values, weighted by softmax over score(query, keys).

    With fewer key heads than query heads (G < H), each serves H / G neighbouring query heads.
    """
    n_queries, n_keys = q_BHQE.shape[2], k_BGKE.shape[2]
    mask = mask.for_queries(n_queries)
    if tap is not None:
        rows = Rows(0, n_queries)
        return _explicit(q_BHQE, k_BGKE, v_BGKW, score, mask, bias, tap, dropout, rows, n_queries)
    dot = score.as_dot(q_BHQE)
    if dot is not None and dropout == 0.0:
        q_BHQE, scale = dot
        return _fused(q_BHQE, k_BGKE, v_BGKW, scale, mask, bias)
    per_row = q_BHQE.shape[0] * q_BHQE.shape[1] * n_keys * (1 if dot is not None else q_BHQE.shape[3])
    return _tiled(
        lambda q, k, v, rows: _explicit(q, k, v, score, mask, bias, None, dropout, rows, n_queries),
        (q_BHQE, k_BGKE, v_BGKW),
        per_row,
    )


def _fused(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Mask, bias: Bias | None) -> Tensor:
    (n_queries, d_key), (n_keys, d_value) = q.shape[2:], v.shape[2:]
    if bias is None and not mask.by_head and has_few_keys(q, n_keys, masked=bool(mask.parts)):
        keep, live = _open_dead_rows(mask.dense(Rows(0, n_queries), n_queries, n_keys, q.device))
        out = attend_few_keys(q, k, v, scale, keep)
        return out if live is None else out * live
    if d_key < d_value:  # zeros change no dot product; unequal widths would leave the kernel
        q, k = F.pad(q, (0, d_value - d_key)), F.pad(k, (0, d_value - d_key))
    elif d_value < d_key:
        v = F.pad(v, (0, d_key - d_value))
    gqa = k.shape[1] != q.shape[1]

    def kernel(q: Tensor, k: Tensor, v: Tensor, rows: Rows) -> Tensor:
        extra, live = _open_dead_rows(mask.dense(rows, n_queries, n_keys, q.device))
        if bias is not None:
            extra_scores = bias(rows).to(q.dtype)
            extra = extra_scores if extra is None else extra_scores.masked_fill(~extra, -torch.inf)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=extra, scale=scale, enable_gqa=gqa)
        return out if live is None else out * live

    if bias is None and mask.is_plain_causal and n_queries == n_keys:
        # is_causal aligns queries to the *start* of the keys, so it is right only when Q = K
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=gqa)
    elif bias is None and not mask.by_query:
        out = kernel(q, k, v, Rows(0, n_queries))
    else:
        per_row = q.shape[0] * (1 if bias is None else q.shape[1]) * n_keys
        out = _tiled(kernel, (q, k, v), per_row)
    return out[..., :d_value]


def _open_dead_rows(keep_B1QK: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The mask with dead rows opened, and live_B1Q1, the rows that may see something at all."""
    if keep_B1QK is None:
        return None, None
    live_B1Q1 = keep_B1QK.any(-1, keepdim=True)
    return keep_B1QK | ~live_B1Q1, live_B1Q1


def _explicit(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    score: Score,
    mask: Mask,
    bias: Bias | None,
    tap: Tap | None,
    dropout: float,
    rows: Rows,
    n_queries: int,
) -> Tensor:
    group = q.shape[1] // k.shape[1]
    if group > 1:
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores_BHQK = score(q, k)
    if bias is not None:
        scores_BHQK = scores_BHQK + bias(rows).to(scores_BHQK.dtype)
    keep = mask.dense(rows, n_queries, k.shape[2], q.device)
    if keep is None:
        weights_BHQK = torch.softmax(scores_BHQK, dim=-1)
    else:
        live = keep.any(-1, keepdim=True)
        weights_BHQK = torch.softmax(scores_BHQK.masked_fill(~keep & live, -torch.inf), dim=-1) * live
    if tap is not None:
        weights_BHQK = tap(weights_BHQK, v)
    return F.dropout(weights_BHQK, dropout) @ v


def _tiled(
    kernel: Callable[[Tensor, Tensor, Tensor, Rows], Tensor],
    qkv: tuple[Tensor, Tensor, Tensor],
    elements_per_row: int,
) -> Tensor:
    """Run `kernel` on as many query rows at a time as fit; in one go when all do."""
    q, k, v = qkv
    tiles = list(_tiles(q.shape[2], max(1, TILE_ELEMENTS // max(1, elements_per_row))))
    if len(tiles) == 1:
        return kernel(q, k, v, tiles[0])
    if torch.is_grad_enabled():
        again = kernel

        def kernel(q: Tensor, k: Tensor, v: Tensor, rows: Rows) -> Tensor:
            out: Tensor = checkpoint(again, q, k, v, rows, use_reentrant=False)
            return out

    return torch.cat([kernel(q[:, :, rows.start : rows.stop], k, v, rows) for rows in tiles], dim=2)


def _tiles(n_queries: int, n_rows: int) -> Iterator[Rows]:
    for start in range(0, max(n_queries, 1), n_rows):
        yield Rows(start, min(start + n_rows, n_queries))
