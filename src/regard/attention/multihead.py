"""Attention: project → position → (cache) → attend → output. One class for every model of the project.

A model is a choice of score, mask, position and cache, never a subclass. `project` names the matrices
that exist: "qkvo" is the Transformer's, "qk" Bahdanau's (values are the states themselves), "" Luong's.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.cache import Growing, Past, Static
from regard.attention.core import attend
from regard.attention.cpu.unpadded import Unpadded
from regard.attention.mask import FULL, Mask
from regard.attention.position import ALiBi, Distances, RelativeBias, Rotary, TimeGaps
from regard.attention.reach import Call, Reach
from regard.attention.score import ScaledDot, Score
from regard.attention.tap import Site
from regard.linear import Linear, concat_weights


class Attention(Site):
    """Multi-head attention; `n_kv_heads` < `n_heads` is grouped-query attention, 1 is multi-query."""

    def __init__(
        self,
        d_query: int,
        d_memory: int | None = None,
        *,
        n_heads: int = 1,
        n_kv_heads: int | None = None,
        d_key: int | None = None,
        d_value: int | None = None,
        score: Score | None = None,
        project: str = "qkvo",
        bias: bool = True,
        rotary: Rotary | None = None,
        distance: RelativeBias | ALiBi | TimeGaps | None = None,
        dropout: float = 0.0,
        reach: Reach | None = None,
    ) -> None:
        super().__init__()
        d_memory = d_query if d_memory is None else d_memory
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
        assert self.n_heads % self.n_kv_heads == 0
        d_key = d_query // n_heads if d_key is None else d_key
        d_value = d_key if d_value is None else d_value
        if "v" not in project:
            d_value = d_memory // self.n_kv_heads
        self.d_out = d_query if "o" in project else n_heads * d_value
        self.score = ScaledDot() if score is None else score
        self.q = Linear(d_query, n_heads * d_key, bias=bias) if "q" in project else None
        self.k = Linear(d_memory, self.n_kv_heads * d_key, bias=bias) if "k" in project else None
        self.v = Linear(d_memory, self.n_kv_heads * d_value, bias=bias) if "v" in project else None
        self.o = Linear(n_heads * d_value, d_query, bias=bias) if "o" in project else None
        self.rotary, self.distance, self.dropout = rotary, distance, dropout
        self.reach = reach

    @property
    def scope(self) -> str:
        return "" if self.reach is None else str(self.reach)

    def project_kv(
        self, memory_BKD: Tensor, positions_BK: Tensor | None = None, *, unpadded: Unpadded | None = None
    ) -> Growing:
        """The keys and values of a memory, for use now and later.

        Positions are 0, 1, 2 … unless given; they must be given if the result is appended to a cache.
        """
        k_BKD, v_BKD = _project(memory_BKD, (self.k, self.v), unpadded)
        return self._split_kv(k_BKD, v_BKD, positions_BK)

    def _split_kv(self, k_BKD: Tensor, v_BKD: Tensor, positions_BK: Tensor | None) -> Growing:
        k_BGKE, v_BGKW = _split_heads(k_BKD, self.n_kv_heads), _split_heads(v_BKD, self.n_kv_heads)
        if self.rotary is not None:
            k_BGKE = self.rotary(k_BGKE, _positions(positions_BK, 0, k_BKD))
        return Growing(k_BGKE, v_BGKW, positions_BK)

    def forward(
        self,
        x_BQD: Tensor,
        memory: Static | None = None,
        *,
        mask: Mask = FULL,
        positions_BQ: Tensor | None = None,
    ) -> Tensor:
        """Attends from x to `memory`, or to x itself when there is none.

        A memory may have fewer rows than x: then its rows are sources and x holds their beams, one query
        each. They are laid side by side as queries of one source, so no key is ever copied per beam.
        """
        if memory is None:
            return self.self_attend(x_BQD, mask=mask, positions_BT=positions_BQ)[0]
        rows, sources = x_BQD.shape[0], memory.k_BGKE.shape[0]
        if rows != sources:
            assert x_BQD.shape[1] == 1, "beams come one query each"
            assert not mask.by_query, "beams see the same keys"
            assert (self.rotary, self.distance) == (None, None), (
                "beams stand at one position, not side by side"
            )
            beside: Tensor = self(x_BQD.reshape(sources, rows // sources, -1), memory, mask=mask)
            return beside.reshape(rows, 1, -1)
        (q_BQD,) = _project(x_BQD, (self.q,))
        return self._attend(q_BQD, memory, mask, positions_BQ)

    def self_attend(
        self,
        x_BTD: Tensor,
        past: Past | None = None,
        *,
        mask: Mask = FULL,
        positions_BT: Tensor | None = None,
        unpadded: Unpadded | None = None,
    ) -> tuple[Tensor, Past]:
        """Attends from x to itself and to its past; returns the output and all keys and values so far."""
        q_BTD, k_BTD, v_BTD = _project(x_BTD, (self.q, self.k, self.v), unpadded)
        new = self._split_kv(k_BTD, v_BTD, positions_BT)
        if self.reach is not None:
            older = None
            if self.reach.cuts_gradients and torch.is_grad_enabled():
                older = self.project_kv(x_BTD.detach(), positions_BT, unpadded=unpadded)
            return self._attend_within(self.reach, q_BTD, new, past, mask, positions_BT, unpadded, older)
        assert past is None or isinstance(past, Growing)
        cache = new if past is None else past.append(new)
        return self._attend(q_BTD, cache, mask, positions_BT, unpadded), cache

    def _attend(
        self,
        q_BQD: Tensor,
        memory: Static,
        mask: Mask,
        positions_BQ: Tensor | None,
        unpadded: Unpadded | None = None,
    ) -> Tensor:
        offset = memory.k_BGKE.shape[2] - q_BQD.shape[1]
        out_BHQW = attend(
            self._queries(q_BQD, positions_BQ, offset),
            memory.k_BGKE,
            memory.v_BGKW,
            score=self.score,
            mask=mask,
            bias=self._bias(q_BQD, memory, positions_BQ, offset),
            tap=self.tap,
            dropout=self.dropout if self.training else 0.0,
        )
        return self._out(out_BHQW, unpadded)

    def _attend_within(
        self,
        reach: Reach,
        q_BTD: Tensor,
        new: Growing,
        past: Past | None,
        mask: Mask,
        positions_BT: Tensor | None,
        unpadded: Unpadded | None,
        older: Growing | None,
    ) -> tuple[Tensor, Past]:
        assert past is None or positions_BT is not None, "a past that is cut short does not count positions"
        query_BT = _positions(positions_BT, 0, q_BTD)
        call = Call(
            self.score, mask, self.distance, query_BT, self.tap, self.dropout if self.training else 0.0
        )
        out_BHTW, cache = reach.attend(self._queries(q_BTD, query_BT, 0), new, past, call, older)
        return self._out(out_BHTW, unpadded), cache

    def _queries(self, q_BQD: Tensor, positions_BQ: Tensor | None, offset: int) -> Tensor:
        q_BHQE = _split_heads(q_BQD, self.n_heads)
        if self.rotary is None:
            return q_BHQE
        turned_BHQE: Tensor = self.rotary(q_BHQE, _positions(positions_BQ, offset, q_BQD))
        return turned_BHQE

    def _out(self, out_BHQW: Tensor, unpadded: Unpadded | None) -> Tensor:
        out_BQD = out_BHQW.transpose(1, 2).flatten(2)
        if unpadded is not None:
            out_BQD = unpadded.gather(out_BQD)
        return out_BQD if self.o is None else self.o(out_BQD)

    def _bias(
        self, q_BQD: Tensor, memory: Static, positions_BQ: Tensor | None, offset: int
    ) -> Distances | None:
        if self.distance is None:
            return None
        key_BK = memory.positions_BK
        if key_BK is None:
            key_BK = torch.arange(memory.k_BGKE.shape[2], device=q_BQD.device)[None]
        return Distances(self.distance, _positions(positions_BQ, offset, q_BQD), key_BK)


def _project(
    x_BTD: Tensor, maps: Sequence[Linear | None], unpadded: Unpadded | None = None
) -> tuple[Tensor, ...]:
    """The projections of x, padded if x is unpadded; without a map, x itself.

    Maps without adapters or hooks are one product.
    """
    bare = [part for part in maps if part is not None and part.is_bare]
    if len(bare) < len(maps):
        projected = [x_BTD if part is None else part(x_BTD) for part in maps]
        return tuple(projected if unpadded is None else map(unpadded.pad, projected))
    projected_BTD = F.linear(x_BTD, *concat_weights(bare))
    projected_BTD = projected_BTD if unpadded is None else unpadded.pad(projected_BTD)
    return torch.split_with_sizes(projected_BTD, [part.d_out for part in bare], dim=-1)


def _split_heads(x_BTD: Tensor, n_heads: int) -> Tensor:
    return torch.unflatten(x_BTD, -1, (n_heads, -1)).transpose(1, 2)


def _positions(positions_BT: Tensor | None, offset: int, x_BTD: Tensor) -> Tensor:
    if positions_BT is not None:
        return positions_BT
    return torch.arange(offset, offset + x_BTD.shape[1], device=x_BTD.device)[None]
