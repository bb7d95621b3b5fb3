"""The protocol of a reach: how far a self-attention sees, and what it has to keep of the past for that."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from regard.attention.cache import Growing
from regard.attention.mask import Mask
from regard.attention.position import Distances
from regard.attention.score import Score
from regard.attention.tap import Tap


class Call(NamedTuple):
    """How an attention attends this time: everything beside its queries, keys and values."""

    score: Score
    mask: Mask
    distance: Callable[[Tensor, Tensor], Tensor] | None
    """Adds to the scores of queries and keys at positions (B, Q) and (B, K)."""
    query_BQ: Tensor
    """Positions of the queries; one row may stand for all."""
    tap: Tap | None
    dropout: float

    def distances(self, key_BK: Tensor) -> Distances | None:
        return None if self.distance is None else Distances(self.distance, self.query_BQ, key_BK)


class Reach(Protocol):
    """How far a self-attention sees."""

    @property
    def cuts_gradients(self) -> bool:
        """Whether nothing is learnt through keys of earlier chunks, which then come as `older`."""

    def attend(
        self, q_BHQE: Tensor, new: Growing, past: Any, call: Call, older: Growing | None = None
    ) -> tuple[Tensor, Any]:
        """out_BHQW, and what is to be kept of everything read so far (a `Past` of this reach's kind)."""

    def lasts(self, query: Tensor, key: Tensor) -> Tensor:
        """Whether a query at this position or a later one needs the key to be kept."""

    def __str__(self) -> str:
        """A few words under a map: what it cannot show."""


def joined(new: Growing, past: Any) -> Growing:
    """The keys and values so far; ValueError if the past is that of another reach."""
    if past is None:
        return new
    if not isinstance(past, Growing):
        raise ValueError(f"a cache of sums cannot be continued with keys ({type(past).__name__})")
    return past.append(new)


def key_positions(cache: Growing) -> Tensor:
    """positions_BK of the keys of a cache."""
    if cache.positions_BK is not None:
        return cache.positions_BK
    return torch.arange(cache.k_BGKE.shape[2], device=cache.k_BGKE.device)[None]
