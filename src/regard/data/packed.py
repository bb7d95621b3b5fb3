"""Packed text: the tokens of all rows concatenated and cut into blocks of one length.

The tokens form a ring. The blocks of an epoch go round it once, from a start drawn from (seed, epoch): a
block may begin anywhere, every token is predicted exactly once, and only one block is shorter. Nothing is
stored.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Protocol, Self

import numpy as np

from regard.data.cache import Arrays, Encoder, Examples
from regard.errors import DataError
from regard.files.row import Row


class Packing(Encoder, Protocol):
    """An encoder whose rows are learnt from as one text."""

    @property
    def block(self) -> int:
        """Tokens of a block, all predicted together."""


class Packed(Examples):
    def __init__(
        self,
        encoder: Packing,
        arrays: Arrays,
        files: Sequence[str],
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(encoder, arrays, files, left_out)
        self.block = encoder.block
        if not self.columns:
            return
        tokens = self.columns["ids"]
        self._tokens, self._ends, self._begin = tokens.values, tokens.ends, 0
        n_blocks = -(-len(self._tokens) // self.block)
        self.sizes = np.full((n_blocks, 1), self.block, np.int32)
        self.sizes[-1] = len(self._tokens) - (n_blocks - 1) * self.block

    def in_epoch(self, seed: int, epoch: int) -> Self:
        turned = copy(self)
        turned._begin = int(np.random.default_rng((seed, epoch)).integers(len(self._tokens)))
        return turned

    def __getitem__(self, i: Any) -> Any:
        """A block, with the token before the first one that is predicted."""
        begin = self._place(i)
        places = np.arange(begin - 1, begin + self.sizes[i, 0])
        return self._encoder.revive(self.row(i), {"ids": self._tokens.take(places, mode="wrap")})

    def _place(self, i: int) -> int:
        if not 0 <= i < len(self):
            raise IndexError(i)
        return (self._begin + i * self.block) % len(self._tokens)

    def row(self, i: int) -> Row:
        """The row in which a block begins."""
        return super().row(int(np.searchsorted(self._ends, self._place(i), side="right")))

    def refuse_unfit(self, name: str) -> None:
        """Raise DataError for a text that does not fill one block."""
        n_tokens = int(self.sizes.sum())
        if not n_tokens:
            raise DataError(f"{name}: holds no text")
        if n_tokens < self.block:
            raise DataError(
                f"{name}: holds {n_tokens} tokens, fewer than one block of {self.block}; "
                "give more text, or a smaller task.max_length"
            )
