"""Windows and chunks: queries in blocks, and each block with the keys near it alone.

A text of T positions is cut into blocks; the keys of a block are those of its neighbours, laid side by
side, and `attend` sees every block as a row of its own. Work and memory grow with T times the width of the
band. A dilated window is a plain one over every d-th position. Global positions come before the keys of
each block, and their queries, a few, are attended to the whole text at the end.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.cache import Growing
from regard.attention.core import attend
from regard.attention.mask import Chunk, Dense, Mask, Placed, Rows, Window, causal, only_keys
from regard.attention.position import Distances
from regard.attention.reach.reach import Call, joined, key_positions

BLOCK = 128
"""Queries of a block of a window: fewer mean smaller products, more mean more work outside the band."""


class _Cut(NamedTuple):
    """How a text is cut: queries of a block, blocks of keys before and after it, every how many positions."""

    size: int
    before: int
    after: int
    dilation: int = 1

    @property
    def n_keys(self) -> int:
        return (self.before + 1 + self.after) * self.size

    def blocks(self, x_BHTE: Tensor) -> Tensor:
        """x_BSNHCE: of S interleaved texts, N blocks of C positions; filled up with zeros."""
        n_filled = -x_BHTE.shape[2] % (self.size * self.dilation)
        x_BHTE = F.pad(x_BHTE, (0, 0, 0, n_filled)) if n_filled else x_BHTE
        n_batch, n_heads, _, width = x_BHTE.shape
        x_BHNCSE = x_BHTE.reshape(n_batch, n_heads, -1, self.size, self.dilation, width)
        return x_BHNCSE.permute(0, 4, 2, 1, 3, 5)

    def whole(self, x_BSNHCE: Tensor, n: int) -> Tensor:
        """x_BHTE of the blocks, the first n positions."""
        return x_BSNHCE.permute(0, 3, 2, 4, 1, 5).flatten(2, 4)[:, :, :n]

    def near(self, own_BSNHCE: Tensor, others_BSNHCE: Tensor) -> Tensor:
        """x_BSNHKE: each block between its neighbours, which are taken from `others`."""
        n = own_BSNHCE.shape[2]
        shape = list(own_BSNHCE.shape)
        shape[2] = self.before
        first = own_BSNHCE.new_zeros(shape)
        shape[2] = self.after
        last = own_BSNHCE.new_zeros(shape)
        others_BSNHCE = torch.cat([first, others_BSNHCE, last], 2)
        parts = [others_BSNHCE[:, :, at : at + n] for at in range(self.before + 1 + self.after)]
        parts[self.before] = own_BSNHCE
        return torch.cat(parts, 4)

    def positions(self, n: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """query_SNC and key_SNK, places in the text; negative or ≥ n where there is none."""
        n_blocks = -(-n // (self.size * self.dilation))
        step = self.size * self.dilation
        place_SC = torch.arange(step, device=device).view(self.size, self.dilation).t()
        begins_N = torch.arange(n_blocks, device=device) * step
        query_SNC = begins_N[:, None] + place_SC[:, None]
        around = range(-self.before, self.after + 1)
        return query_SNC, torch.cat([query_SNC + step * at for at in around], dim=-1)


@dataclass(frozen=True)
class Blocks:
    """A window or chunks; with `cuts_gradients`, earlier chunks are a memory nothing is learnt through."""

    band: Window | Chunk
    cuts_gradients: bool = False

    def attend(
        self, q_BHQE: Tensor, new: Growing, past: Any, call: Call, older: Growing | None = None
    ) -> tuple[Tensor, Growing]:
        cache = joined(new, past)
        n, keys_BK = q_BHQE.shape[2], key_positions(cache)
        in_blocks = past is None and call.tap is None and call.mask.is_plain and n > self._cut.n_keys
        if in_blocks:
            return self._blocked(q_BHQE, cache, new if older is None else older, call), cache
        band = Mask((self.band if past is None else Placed(self.band.sees, call.query_BQ, keys_BK),))
        out_BHQW = attend(
            q_BHQE,
            cache.k_BGKE,
            cache.v_BGKW,
            score=call.score,
            mask=call.mask & band,
            bias=call.distances(keys_BK),
            tap=call.tap,
            dropout=call.dropout,
        )
        return out_BHQW, cache

    def lasts(self, query: Tensor, key: Tensor) -> Tensor:
        return self.band.lasts(query, key)

    def __str__(self) -> str:
        band = self.band
        if isinstance(band, Chunk):
            around = f"{band.left_chunks} before it" + (
                f", {band.right_chunks} after" * bool(band.right_chunks)
            )
            return f"banded: chunks of {band.size}, and {around}"
        every = f", one in {band.dilation}" if band.dilation > 1 else ""
        all_see = f", the first {band.n_global} by all" if band.n_global else ""
        return f"banded: {band.left} back, {band.right} ahead{every}{all_see}"

    @property
    def _cut(self) -> _Cut:
        band = self.band
        if isinstance(band, Chunk):
            return _Cut(band.size, band.left_chunks, band.right_chunks)
        size = min(BLOCK, max(16, band.left, band.right))
        return _Cut(size, -(-band.left // size), -(-band.right // size), band.dilation)

    @property
    def _n_global(self) -> int:
        return self.band.n_global if isinstance(self.band, Window) else 0

    def _blocked(self, q_BHTE: Tensor, cache: Growing, older: Growing, call: Call) -> Tensor:
        """Every block with its keys as a row of `attend`."""
        n_batch, _, n, _ = q_BHTE.shape
        cut, n_global = self._cut, min(self._n_global, n)
        query_SNC, key_SNK = cut.positions(n, q_BHTE.device)
        keys = [(cache.k_BGKE, older.k_BGKE), (cache.v_BGKW, older.v_BGKW)]
        near = [cut.near(cut.blocks(own), cut.blocks(before)) for own, before in keys]
        real_BT = call.mask.keys(n, q_BHTE.device)
        keep_BSNCK = self._keep(query_SNC, key_SNK, n, call.mask.is_causal, real_BT)
        if n_global:
            shape = (n_batch, *near[0].shape[1:3], -1, -1, -1)
            every = [x[:, :, :n_global] for x in (cache.k_BGKE, cache.v_BGKW)]
            near = [
                torch.cat([x[:, None, None].expand(shape), of], 4) for x, of in zip(every, near, strict=True)
            ]
            place_G = torch.arange(n_global, device=q_BHTE.device)
            key_SNK = torch.cat([place_G.expand(*key_SNK.shape[:2], -1), key_SNK], -1)
            keep_BSNCK = torch.cat(
                [self._keep_global(query_SNC, place_G, call.mask.is_causal, real_BT, keep_BSNCK), keep_BSNCK],
                -1,
            )
        q_BSNHCE = cut.blocks(q_BHTE)
        keep_N1CK = keep_BSNCK.expand(n_batch, *keep_BSNCK.shape[1:]).flatten(0, 2)[:, None]
        out_NHCW = attend(
            q_BSNHCE.flatten(0, 2),
            near[0].flatten(0, 2),
            near[1].flatten(0, 2),
            score=call.score,
            mask=Mask((Dense(keep_N1CK),)),
            bias=_bias(call, query_SNC, key_SNK, cache, n_batch),
            dropout=call.dropout,
        )
        out_BHTW = cut.whole(torch.unflatten(out_NHCW, 0, q_BSNHCE.shape[:3]), n)
        if not n_global:
            return out_BHTW
        return torch.cat(
            [self._global(q_BHTE, cache, call, n_global, real_BT), out_BHTW[:, :, n_global:]], dim=2
        )

    def _keep(
        self, query_SNC: Tensor, key_SNK: Tensor, n: int, is_causal: bool, real_BT: Tensor | None
    ) -> Tensor:
        """keep_BSNCK of the keys near each block; global keys are not among them."""
        query, key = query_SNC[..., None], key_SNK[..., None, :]
        keep = self.band.sees(query, key) & (key >= self._n_global) & (key < n)
        keep = keep & (key <= query) if is_causal else keep
        if real_BT is None:
            return keep[None]
        return keep & real_BT[:, key_SNK.clamp(0, n - 1)][..., None, :]

    def _keep_global(
        self, query_SNC: Tensor, place_G: Tensor, is_causal: bool, real_BT: Tensor | None, like: Tensor
    ) -> Tensor:
        keep = place_G <= query_SNC[..., None] if is_causal else torch.ones_like(query_SNC)[..., None] > 0
        keep = keep.expand(*query_SNC.shape, len(place_G))[None]
        if real_BT is not None:
            keep = keep & real_BT[:, None, None, None, place_G]
        return keep.expand(len(like), -1, -1, -1, -1)

    def _global(
        self, q_BHTE: Tensor, cache: Growing, call: Call, n_global: int, real_BT: Tensor | None
    ) -> Tensor:
        """out_BHGW of the global positions, which see all, or all that came before."""
        n_keys = n_global if call.mask.is_causal else cache.k_BGKE.shape[2]
        mask = causal() if call.mask.is_causal else Mask()
        bias = None
        if call.distance is not None:
            keys_BK = key_positions(cache)[:, :n_keys]
            bias = Distances(call.distance, call.query_BQ[:, :n_global], keys_BK)
        return attend(
            q_BHTE[:, :, :n_global],
            cache.k_BGKE[:, :, :n_keys],
            cache.v_BGKW[:, :, :n_keys],
            score=call.score,
            mask=mask if real_BT is None else mask & only_keys(real_BT[:, :n_keys]),
            bias=bias,
            dropout=call.dropout,
        )


@dataclass(frozen=True, eq=False)
class _BlockDistances:
    """The additive scores of blocks, the same for every row of the batch if positions are."""

    distances: Distances
    times: int

    def __call__(self, rows: Rows) -> Tensor:
        bias = self.distances(rows)
        return bias if self.times == 1 else bias.repeat(self.times, 1, 1, 1)


def _bias(
    call: Call, query_SNC: Tensor, key_SNK: Tensor, cache: Growing, n_batch: int
) -> _BlockDistances | None:
    if call.distance is None:
        return None
    keys_BT = key_positions(cache)
    n = cache.k_BGKE.shape[2]
    query = call.query_BQ[:, query_SNC.clamp(0, n - 1)].flatten(0, 2)
    key = keys_BT[:, key_SNK.clamp(0, n - 1)].flatten(0, 2)
    rows = max(len(call.query_BQ), len(keys_BT))
    return _BlockDistances(Distances(call.distance, query, key), n_batch if rows == 1 else 1)
