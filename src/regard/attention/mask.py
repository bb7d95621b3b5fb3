"""Masks are immutable values. True = may attend, everywhere in the project; `&` combines them.

    causal() & padding(lengths_B)

A mask is dense only when a kernel asks, and then only for the query rows it asks for. When there are
fewer queries than keys (a cache), the queries are the *last* positions of the keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Rows(NamedTuple):
    """A range of query rows. No `range`: while a graph is exported, lengths are symbols."""

    start: int
    stop: int


class Condition(Protocol):
    """One condition of a mask. `by_query` says whether it differs between query rows."""

    by_query: bool

    def keep(self, query_Q1: Tensor, key_K: Tensor) -> Tensor:
        """True where the query may see the key; broadcasts to (B, 1, Q, K)."""


@dataclass(frozen=True)
class Causal:
    by_query = True

    def keep(self, query_Q1: Tensor, key_K: Tensor) -> Tensor:
        return (key_K <= query_Q1)[None, None]


@dataclass(frozen=True, eq=False)
class Padding:
    """Either the number of real keys of each row, or which keys are real (left padding, holes)."""

    lengths_B: Tensor | None = None
    keep_BK: Tensor | None = None
    by_query = False

    def keep(self, query_Q1: Tensor, key_K: Tensor) -> Tensor:
        if self.keep_BK is not None:
            return self.keep_BK[:, None, None, :]
        assert self.lengths_B is not None
        return (key_K < self.lengths_B[:, None])[:, None, None, :]


@dataclass(frozen=True)
class Window:
    """Keys near the query: `left` before it and `right` after it, every `dilation`-th position.

    The first `n_global` positions are seen by all and see all.
    """

    left: int
    right: int
    dilation: int = 1
    n_global: int = 0
    by_query = True

    def keep(self, query_Q1: Tensor, key_K: Tensor) -> Tensor:
        return self.sees(query_Q1, key_K)[None, None]

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        """Whether positions see each other, in any shapes that broadcast."""
        near = (key >= query - self.left * self.dilation) & (key <= query + self.right * self.dilation)
        if self.dilation > 1:
            near = near & ((query - key) % self.dilation == 0)
        return near | (key < self.n_global) | (query < self.n_global) if self.n_global else near

    def lasts(self, query: Tensor, key: Tensor) -> Tensor:
        """Whether this query or a later one sees the key."""
        return (key >= query - self.left * self.dilation) | (key < self.n_global)


@dataclass(frozen=True)
class Chunk:
    """The query's own chunk, `left_chunks` before it and `right_chunks` after it."""

    size: int
    left_chunks: int
    right_chunks: int = 0
    by_query = True

    def keep(self, query_Q1: Tensor, key_K: Tensor) -> Tensor:
        return self.sees(query_Q1, key_K)[None, None]

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        """Whether positions see each other, in any shapes that broadcast."""
        behind = query // self.size - key // self.size
        return (behind >= -self.right_chunks) & (behind <= self.left_chunks)

    def lasts(self, query: Tensor, key: Tensor) -> Tensor:
        """Whether this query or a later one sees the key."""
        return query // self.size - key // self.size <= self.left_chunks


@dataclass(frozen=True, eq=False)
class Placed:
    """A condition on positions that are not simply the places of queries and keys, as in a cache."""

    sees: Callable[[Tensor, Tensor], Tensor]
    query_BQ: Tensor
    key_BK: Tensor
    by_query = True

    def keep(self, query_Q1: Tensor, key_K: Tensor) -> Tensor:
        row_Q = query_Q1[:, 0] - (self.key_BK.shape[1] - self.query_BQ.shape[1])
        return self.sees(self.query_BQ[:, row_Q, None], self.key_BK[:, None])[:, None]


@dataclass(frozen=True, eq=False)
class Dense:
    """A mask that is there already, of all heads (H = 1) or of each: that of blocks of a text."""

    keep_BHQK: Tensor
    by_query = True

    def keep(self, query_Q1: Tensor, key_K: Tensor) -> Tensor:
        n_before = self.keep_BHQK.shape[3] - self.keep_BHQK.shape[2]
        return self.keep_BHQK[:, :, query_Q1[:, 0] - n_before]


@dataclass(frozen=True, eq=False)
class Prefix:
    lengths_B: Tensor
    by_query = True

    def keep(self, query_Q1: Tensor, key_K: Tensor) -> Tensor:
        return ((key_K < self.lengths_B[:, None, None]) | (key_K <= query_Q1))[:, None]


@dataclass(frozen=True, eq=False)
class Segments:
    segment_BT: Tensor
    by_query = True

    def keep(self, query_Q1: Tensor, key_K: Tensor) -> Tensor:
        return (self.segment_BT[:, query_Q1[:, 0], None] == self.segment_BT[:, None, key_K])[:, None]


@dataclass(frozen=True)
class Mask:
    """A conjunction of parts. The empty one lets everything through."""

    parts: tuple[Condition, ...] = field(default=())

    def __and__(self, other: "Mask") -> "Mask":
        return Mask(self.parts + other.parts)

    def for_queries(self, n_queries: int) -> "Mask":
        """This mask without conditions that cannot matter: the newest query alone sees its whole past."""
        if n_queries > 1:
            return self
        return Mask(tuple(part for part in self.parts if not isinstance(part, Causal)))

    @property
    def is_plain_causal(self) -> bool:
        return bool(self.parts) and all(isinstance(part, Causal) for part in self.parts)

    @property
    def by_head(self) -> bool:
        return any(isinstance(part, Dense) and part.keep_BHQK.shape[1] > 1 for part in self.parts)

    @property
    def is_plain(self) -> bool:
        """Whether nothing but padding and the future is hidden."""
        return all(isinstance(part, Causal | Padding) for part in self.parts)

    @property
    def is_causal(self) -> bool:
        return any(isinstance(part, Causal) for part in self.parts)

    def keys(self, n_keys: int, device: torch.device) -> Tensor | None:
        """keep_BK, the keys that are no padding; None if there is no padding."""
        padded = Mask(tuple(part for part in self.parts if not part.by_query))
        keep_B11K = padded.dense(Rows(0, n_keys), n_keys, n_keys, device)
        return None if keep_B11K is None else keep_B11K[:, 0, 0]

    @property
    def by_query(self) -> bool:
        return any(part.by_query for part in self.parts)

    def dense(self, rows: Rows, n_queries: int, n_keys: int, device: torch.device) -> Tensor | None:
        """keep_B1QK for these query rows (B and Q may be 1 and broadcast), or None for everything."""
        if not self.parts:
            return None
        offset = n_keys - n_queries
        query_Q1 = torch.arange(rows.start + offset, rows.stop + offset, device=device)[:, None]
        key_K = torch.arange(n_keys, device=device)
        keep = self.parts[0].keep(query_Q1, key_K)
        for part in self.parts[1:]:
            keep = keep & part.keep(query_Q1, key_K)
        return keep


FULL = Mask()


def causal() -> Mask:
    """A query sees itself and what came before."""
    return Mask((Causal(),))


def padding(lengths_B: Tensor) -> Mask:
    """Keys at or after a row's length do not exist."""
    return Mask((Padding(lengths_B=lengths_B),))


def only_keys(keep_BK: Tensor) -> Mask:
    """Keys chosen one by one: left padding, holes."""
    return Mask((Padding(keep_BK=keep_BK),))


def window(left: int, right: int = 0) -> Mask:
    """A query sees `left` positions back and `right` positions ahead."""
    return Mask((Window(left, right),))


def chunk(size: int, left_chunks: int) -> Mask:
    """A query sees its own chunk whole and `left_chunks` chunks back (streaming)."""
    return Mask((Chunk(size, left_chunks),))


def prefix(lengths_B: Tensor) -> Mask:
    """The first `lengths_B` keys are seen by all, the rest causally (prefix language model)."""
    return Mask((Prefix(lengths_B),))


def segments(segment_BT: Tensor) -> Mask:
    """Packed documents: a query sees only keys of its own segment."""
    return Mask((Segments(segment_BT),))
