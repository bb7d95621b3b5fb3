"""Questions as an answerer reads them: each with its context, in overlapping windows where that is long."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from regard.data.cache import Ints
from regard.files.row import Row
from regard.tasks.shared import Padded
from regard.tasks.task import padded

Place = tuple[int, int]
"""From … up to …."""
BETWEEN = 1
"""The mark that stands between a question and its context."""
NOWHERE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Question:
    row: Row
    tokens: Ints
    """Its windows one after another, each framed: the question, a mark, a part of the context, a mark."""
    lengths: Ints
    """Of each window."""
    first: int
    """Where the context begins in every window."""
    ends: Ints
    """First and last place of the answer in each window, 0 0 where it holds none; nothing when unknown."""
    begins: Ints = field(default_factory=lambda: NOWHERE)
    """The piece of the context that each window begins with."""
    offsets: Sequence[Place] = ()
    """The characters of the context that each of its pieces stands for."""
    cut: bool = False
    """The question was too long; only its beginning was read."""
    unspelt: bool = False
    """It has an answer of which no piece is left in the vocabulary."""

    @property
    def n_windows(self) -> int:
        return len(self.lengths)

    @property
    def has_context(self) -> bool:
        return int(self.lengths[0]) > self.first + 1

    def window(self, at: int, ends: Place) -> Self:
        """That one alone, with this answer."""
        stop = int(self.lengths[: at + 1].sum())
        own = slice(at, at + 1)
        return replace(
            self,
            tokens=self.tokens[stop - int(self.lengths[at]) : stop],
            lengths=self.lengths[own],
            ends=np.array(ends, np.int64),
            begins=self.begins[own],
        )

    def characters(self, window: int, first: int, last: int) -> Place:
        """What of the context stands from one place of a window to another."""
        shift = int(self.begins[window]) - self.first
        return self.offsets[first + shift][0], self.offsets[last + shift][1]


@dataclass(frozen=True)
class Questions(Padded):
    tokens_RT: Tensor
    """Windows of all questions, one after another."""
    lengths_R: Tensor
    segments_RT: Tensor
    keep_RT: Tensor
    """Where an answer may stand: in the context."""
    ends_R2: Tensor
    examples: tuple[Question, ...]

    @property
    def counts(self) -> dict[str, int]:
        return {"windows": len(self.lengths_R)}

    @classmethod
    def of(cls, examples: Sequence[Question]) -> Self:
        parts = [np.split(example.tokens, np.cumsum(example.lengths)[:-1]) for example in examples]
        tokens_RT = padded([window for windows in parts for window in windows])
        lengths_R = torch.from_numpy(np.concatenate([example.lengths for example in examples]))
        firsts = [example.first for example in examples for _ in range(example.n_windows)]
        after_RT = torch.arange(tokens_RT.shape[1]) >= torch.tensor(firsts)[:, None]
        within_RT = torch.arange(tokens_RT.shape[1]) < lengths_R[:, None] - 1
        ends_R2 = torch.zeros(len(lengths_R), 2, dtype=torch.long)
        if all(len(example.ends) for example in examples):
            ends_R2 = torch.from_numpy(np.concatenate([example.ends for example in examples])).view(-1, 2)
        return cls(tokens_RT, lengths_R, after_RT.long(), after_RT & within_RT, ends_R2, tuple(examples))

    def unknowing(self, places: Sequence[int], unknown: int) -> Self:
        """A batch of one window, once for each of these places, whose piece becomes unknown.

        It is not left out, as an answer that is gone could not be found.
        """
        n = len(places)
        tokens_RT = self.tokens_RT.repeat(n, 1)
        rows_R = torch.arange(n, device=tokens_RT.device)
        tokens_RT[rows_R, torch.tensor(places, device=tokens_RT.device)] = unknown
        return replace(
            self,
            tokens_RT=tokens_RT,
            lengths_R=self.lengths_R.expand(n),
            segments_RT=self.segments_RT.expand(n, -1),
            keep_RT=self.keep_RT.expand(n, -1),
            ends_R2=self.ends_R2.expand(n, -1),
            examples=self.examples * n,
        )


def context_windows(n_pieces: int, room: int, overlap: int) -> list[Place]:
    """Of a context of so many pieces, the parts that are read together; one without pieces has one, empty."""
    found = [(0, min(room, n_pieces))]
    while found[-1][1] < n_pieces:
        begin = found[-1][0] + room - overlap
        found.append((begin, min(begin + room, n_pieces)))
    return found


def piece_places(offsets: Sequence[Place], place: Place) -> Place | None:
    """First and last piece that hold any of these characters."""
    start, end = place
    touched = [n for n, (begin, stop) in enumerate(offsets) if begin < end and stop > start]
    return (touched[0], touched[-1]) if touched else None
