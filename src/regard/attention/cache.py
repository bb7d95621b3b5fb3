"""Key-value caches, passed in and out as values, never kept on a module.

`Static` is for a source that does not change (cross-attention): one row per source, shared by its beams.
`Growing` is for a decoder's past (self-attention): one row per hypothesis, lengthened by each step.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


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
