"""Key-value caches, passed in and out as values, never kept on a module.

`Static` is for a source that does not change (cross-attention): one row per source, shared by its beams.
`Growing` is for a decoder's past (self-attention): one row per hypothesis, lengthened by each step.
`Sums` is the past of linear attention: it has one size, however much was read.
"""

from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor


class Past(Protocol):
    """What a self-attention keeps of the positions it has read."""

    def select(self, sources_B: Tensor) -> Self:
        """The past of these rows, for a search that reorders its hypotheses."""

    def slots(self, slots_K: Tensor) -> Self:
        """The past with these keys alone; keys that are no longer kept one by one stay as they are."""

    def written_over(self, again: Self, rows_B: Tensor) -> Self:
        """The past in which these rows hold what was read again."""


@dataclass(frozen=True, slots=True)
class Static:
    k_BGKE: Tensor
    v_BGKW: Tensor
    positions_BK: Tensor | None = None
    """Positions of the keys; one row holds for all, None is 0, 1, 2 …"""

    def select(self, sources_B: Tensor) -> Self:
        """The cache of these sources."""
        positions_BK = self.positions_BK
        if positions_BK is not None and positions_BK.shape[0] > 1:
            positions_BK = positions_BK[sources_B]
        return type(self)(self.k_BGKE[sources_B], self.v_BGKW[sources_B], positions_BK)


@dataclass(frozen=True, slots=True)
class Growing(Static):
    def append(self, new: Static) -> "Growing":
        assert (self.positions_BK is None) == (new.positions_BK is None), "positions: always or never"
        positions_BK = None
        if self.positions_BK is not None and new.positions_BK is not None:
            rows = max(len(self.positions_BK), len(new.positions_BK))
            both = (self.positions_BK, new.positions_BK)
            positions_BK = torch.cat([positions.expand(rows, -1) for positions in both], dim=1)
        k_BGKE = torch.cat([self.k_BGKE, new.k_BGKE], dim=2)
        v_BGKW = torch.cat([self.v_BGKW, new.v_BGKW], dim=2)
        return Growing(k_BGKE, v_BGKW, positions_BK)

    def slots(self, slots_K: Tensor) -> "Growing":
        positions_BK = None if self.positions_BK is None else self.positions_BK[:, slots_K]
        return Growing(self.k_BGKE[:, :, slots_K], self.v_BGKW[:, :, slots_K], positions_BK)

    def written_over(self, again: "Growing", rows_B: Tensor) -> "Growing":
        """The first slots of these rows hold what was read again."""
        n = again.k_BGKE.shape[2]
        k_BGKE, v_BGKW = self.k_BGKE.clone(), self.v_BGKW.clone()
        k_BGKE[rows_B, :, :n], v_BGKW[rows_B, :, :n] = again.k_BGKE, again.v_BGKW
        assert self.positions_BK is not None
        assert again.positions_BK is not None
        positions_BK = self.positions_BK.expand(len(rows_B), -1).clone()
        positions_BK[rows_B, :n] = again.positions_BK
        return Growing(k_BGKE, v_BGKW, positions_BK)


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over all keys so far of φ(key) times its value, and of φ(key), for each head."""

    values_BGEW: Tensor
    keys_BGE: Tensor

    def select(self, sources_B: Tensor) -> "Sums":
        return Sums(self.values_BGEW[sources_B], self.keys_BGE[sources_B])

    def append(self, new: "Sums") -> "Sums":
        return Sums(self.values_BGEW + new.values_BGEW, self.keys_BGE + new.keys_BGE)

    def slots(self, slots_K: Tensor) -> "Sums":
        return self

    def written_over(self, again: "Sums", rows_B: Tensor) -> "Sums":
        values_BGEW, keys_BGE = self.values_BGEW.clone(), self.keys_BGE.clone()
        values_BGEW[rows_B], keys_BGE[rows_B] = again.values_BGEW, again.keys_BGE
        return Sums(values_BGEW, keys_BGE)
