"""Landmarks: a query sees its own chunk, and those other chunks whose mean key fits it best.

The choice is each query's own, and where only the past is seen it is made among chunks that are over. So
that no query needs a copy of its keys, those that chose the same chunk are brought together, in groups of
`GROUP` that read its keys once; the parts of a softmax are then joined by their log-sums. Choosing costs T²
/ size products, everything else grows with T.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.cache import Growing
from regard.attention.core import TILE_ELEMENTS, attend
from regard.attention.mask import Dense, Mask
from regard.attention.reach.reach import Call, joined, key_positions

GROUP = 32
"""Queries that read a chunk together."""


class _Part(NamedTuple):
    """One part of a softmax over keys: the mean of its values, and the logarithm of its sum."""

    out_NQW: Tensor
    lse_NQ: Tensor


@dataclass(frozen=True)
class Landmarks:
    size: int
    n_chunks: int
    cuts_gradients = False

    def attend(
        self, q_BHQE: Tensor, new: Growing, past: Any, call: Call, older: Growing | None = None
    ) -> tuple[Tensor, Growing]:
        cache, n = joined(new, past), q_BHQE.shape[2]
        group = q_BHQE.shape[1] // new.k_BGKE.shape[1]
        k_BHKE, v_BHKW = (x.repeat_interleave(group, 1) for x in (cache.k_BGKE, cache.v_BGKW))
        dot = call.score.as_dot(q_BHQE)
        is_plain = call.tap is None and call.mask.is_plain and past is None and call.dropout == 0
        if dot is not None and is_plain and n > (self.n_chunks + 1) * self.size:
            q_BHQE, scale = dot
            real_BT = call.mask.keys(n, q_BHQE.device)
            return self._grouped(q_BHQE * scale, k_BHKE, v_BHKW, real_BT, call.mask.is_causal), cache
        keep_BHQK = self._keep(q_BHQE, k_BHKE, cache, call, is_causal=past is not None or call.mask.is_causal)
        mask = call.mask & Mask((Dense(keep_BHQK),))
        return attend(
            q_BHQE, k_BHKE, v_BHKW, score=call.score, mask=mask, tap=call.tap, dropout=call.dropout
        ), cache

    def lasts(self, query: Tensor, key: Tensor) -> Tensor:
        return torch.ones_like(query + key, dtype=torch.bool)

    def __str__(self) -> str:
        return f"landmarks: its own chunk of {self.size}, and {self.n_chunks} that it picked"

    def _keep(self, q: Tensor, k: Tensor, cache: Growing, call: Call, *, is_causal: bool) -> Tensor:
        """keep_BHQK, by the chunks each query picks; the future in its own chunk is not hidden here."""
        query_BQ, key_BK = call.query_BQ // self.size, key_positions(cache) // self.size
        n_keys = k.shape[2]
        chunk_N = torch.arange(int(key_BK.max()) + 1, device=k.device)
        real_BK = call.mask.keys(n_keys, k.device)
        member_BKN = (key_BK[..., None] == chunk_N).to(k.dtype)
        if real_BK is not None:
            member_BKN = member_BKN * real_BK[..., None]
        with torch.no_grad():
            n_BN1 = member_BKN.sum(1)[..., None]
            landmark_BHNE = member_BKN.transpose(1, 2)[:, None] @ k / n_BN1.clamp(min=1)[:, None]
            other_BQN = chunk_N < query_BQ[..., None] if is_causal else chunk_N != query_BQ[..., None]
            other_BQN = other_BQN & (n_BN1 > 0).transpose(1, 2)
            fit_BHQN = (q @ landmark_BHNE.transpose(-1, -2)).masked_fill(~other_BQN[:, None], -torch.inf)
            best = fit_BHQN.topk(min(self.n_chunks, len(chunk_N)), -1)
            picked_BHQN = torch.zeros_like(fit_BHQN).scatter(
                -1, best.indices, (best.values > -torch.inf).to(q.dtype)
            )
            seen_BHQN = picked_BHQN + (chunk_N == query_BQ[..., None])[:, None]
            return seen_BHQN @ member_BKN.transpose(1, 2)[:, None] > 0

    def _grouped(self, q: Tensor, k: Tensor, v: Tensor, real_BT: Tensor | None, is_causal: bool) -> Tensor:
        """The same by groups of queries; heads are rows R here, and queries are scaled."""
        (n_batch, n_heads, n), size = q.shape[:3], self.size
        q_RTE, k_RTE, v_RTW = (F.pad(x.flatten(0, 1), (0, 0, 0, -n % size)) for x in (q, k, v))
        real_RT = torch.ones(n_batch, n, dtype=torch.bool, device=q.device) if real_BT is None else real_BT
        real_RT = F.pad(real_RT.expand(n_batch, -1), (0, -n % size)).repeat_interleave(n_heads, 0)
        k_NCE, v_NCW = (torch.unflatten(x, 1, (-1, size)).flatten(0, 1) for x in (k_RTE, v_RTW))
        real_NC = torch.unflatten(real_RT, 1, (-1, size)).flatten(0, 1)
        keep_NCC = real_NC[:, None].expand(-1, size, -1)
        keep_NCC = keep_NCC.tril() if is_causal else keep_NCC
        own = _part(torch.unflatten(q_RTE, 1, (-1, size)).flatten(0, 1), k_NCE, v_NCW, keep_NCC)
        picked_RTM = self._picked(q_RTE.detach(), k_RTE.detach(), real_RT, is_causal)
        out_PMW, lse_PM = _read(q_RTE.flatten(0, 1), k_NCE, v_NCW, real_NC, picked_RTM)
        out_PMW = torch.cat([own.out_NQW.flatten(0, 1)[:, None], out_PMW], 1)
        lse_PM = torch.cat([own.lse_NQ.flatten()[:, None], lse_PM], 1)
        live_P1 = (lse_PM > -torch.inf).any(1, keepdim=True)
        share_PM = torch.softmax(lse_PM.masked_fill(~live_P1, 0.0), 1) * live_P1
        out_PW = (share_PM[:, None] @ out_PMW).squeeze(1)
        return torch.unflatten(out_PW, 0, (n_batch, n_heads, -1))[:, :, :n]

    @torch.no_grad()
    def _picked(self, q_RTE: Tensor, k_RTE: Tensor, real_RT: Tensor, is_causal: bool) -> Tensor:
        """picked_RTM, chunks of its row for each query; −1 where there are no more."""
        size = self.size
        real_RNC = torch.unflatten(real_RT, 1, (-1, size))
        n_RN1 = real_RNC.sum(2)[..., None]
        landmark_RNE = (torch.unflatten(k_RTE, 1, (-1, size)) * real_RNC[..., None]).sum(2) / n_RN1.clamp(
            min=1
        )
        chunk_N = torch.arange(landmark_RNE.shape[1], device=q_RTE.device)
        own_T = torch.arange(q_RTE.shape[1], device=q_RTE.device) // size
        picked, n_rows = [], max(1, TILE_ELEMENTS // max(1, len(q_RTE) * len(chunk_N)))
        for begin in range(0, q_RTE.shape[1], n_rows):
            own_T1 = own_T[begin : begin + n_rows, None]
            other_TN = chunk_N < own_T1 if is_causal else chunk_N != own_T1
            fit_RTN = q_RTE[:, begin : begin + n_rows] @ landmark_RNE.transpose(-1, -2)
            fit_RTN = fit_RTN.masked_fill(~(other_TN & (n_RN1 > 0).transpose(1, 2)), -torch.inf)
            best = fit_RTN.topk(min(self.n_chunks, len(chunk_N)), -1)
            picked.append(best.indices.masked_fill(best.values == -torch.inf, -1))
        return torch.cat(picked, 1)


def _part(q_NQE: Tensor, k_NKE: Tensor, v_NKW: Tensor, keep_NQK: Tensor) -> _Part:
    live_NQ1 = keep_NQK.any(-1, keepdim=True)
    scores_NQK = (q_NQE @ k_NKE.transpose(-1, -2)).masked_fill(~keep_NQK & live_NQ1, -torch.inf)
    lse_NQ1 = torch.logsumexp(scores_NQK, -1, keepdim=True)
    out_NQW = torch.exp(scores_NQK - lse_NQ1) @ v_NKW
    return _Part(out_NQW, lse_NQ1.masked_fill(~live_NQ1, -torch.inf).squeeze(-1))


def _read(
    q_PE: Tensor, k_NCE: Tensor, v_NCW: Tensor, real_NC: Tensor, picked_RTM: Tensor
) -> tuple[Tensor, Tensor]:
    """out_PMW and lse_PM of every query P and chunk M it picked; −inf where it picked none."""
    n_rows, n_queries, n_picks = picked_RTM.shape
    n_chunks = len(k_NCE) // n_rows
    first_R11 = torch.arange(n_rows, device=q_PE.device)[:, None, None] * n_chunks
    is_pick = (picked_RTM >= 0).flatten()
    pair_L = is_pick.nonzero().squeeze(1)
    chunk_L, order_L = (picked_RTM + first_R11).flatten()[pair_L].sort(stable=True)
    pair_L = pair_L[order_L]
    n_N = torch.bincount(chunk_L, minlength=len(k_NCE))
    groups_N = (n_N + GROUP - 1) // GROUP
    rank_L = torch.arange(len(pair_L), device=q_PE.device) - (n_N.cumsum(0) - n_N)[chunk_L]
    slot_L = (groups_N.cumsum(0) - groups_N)[chunk_L] * GROUP + rank_L
    chunk_G = torch.repeat_interleave(torch.arange(len(k_NCE), device=q_PE.device), groups_N)
    query_S = torch.zeros(len(chunk_G) * GROUP, dtype=torch.long, device=q_PE.device)
    query_S[slot_L] = pair_L // n_picks
    q_GQE = torch.unflatten(F.embedding(query_S, q_PE), 0, (-1, GROUP))
    k_GCE, v_GCW = (
        torch.unflatten(F.embedding(chunk_G, x.flatten(1)), 1, x.shape[1:]) for x in (k_NCE, v_NCW)
    )
    part = _part(q_GQE, k_GCE, v_GCW, real_NC[chunk_G][:, None].expand(-1, GROUP, -1))
    slot_P = torch.zeros(n_rows * n_queries * n_picks, dtype=torch.long, device=q_PE.device)
    slot_P[pair_L] = slot_L
    lse_P = part.lse_NQ.flatten()[slot_P].masked_fill(~is_pick, -torch.inf)
    out_PW = F.embedding(slot_P, part.out_NQW.flatten(0, 1))
    return torch.unflatten(out_PW, 0, (-1, n_picks)), torch.unflatten(lse_P, 0, (-1, n_picks))
