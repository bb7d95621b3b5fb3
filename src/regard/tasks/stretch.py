"""Stretches of text in batches, what continues them, and what they cost: the values of language_model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from regard.data.cache import Ints
from regard.files.row import Row
from regard.metrics.language import foretold
from regard.metrics.resample import Floats, Scores, plainly
from regard.tasks.shared import Columns, Padded


@dataclass(frozen=True, slots=True)
class Stretch:
    """A prompt, or a block of text that begins with the token before the first that is foretold."""

    row: Row
    tokens: Ints


@dataclass(frozen=True)
class Stretches(Padded):
    tokens_BT: Tensor
    lengths_B: Tensor
    examples: tuple[Stretch, ...]
    n_given: int = 1
    """Of a replay: how many tokens the answer continues."""
    left_out: Sequence[int] | None = None
    """Of a replay: the tokens that are left out, each in a row of its own."""

    @cached_property
    def keep_BT(self) -> Tensor | None:
        """Where something is foretold; None for everywhere."""
        places_T = torch.arange(1, self.tokens_BT.shape[1], device=self.tokens_BT.device)
        keep_BT = places_T < self.lengths_B[:, None]
        return None if bool(keep_BT.all()) else keep_BT

    @property
    def labels_N(self) -> Tensor:
        labels_BT = self.tokens_BT[:, 1:]
        return labels_BT.flatten() if self.keep_BT is None else labels_BT[self.keep_BT]

    @property
    def counts(self) -> dict[str, int]:
        return {"tokens": int(self.lengths_B.sum()) - len(self.lengths_B)}


@dataclass(frozen=True)
class Continuation:
    text: str
    """Without the prompt."""
    ids: tuple[int, ...]
    score: float
    others: tuple["Continuation", ...] = ()
    """The rest of the n best."""
    steps: tuple[float, ...] = ()
    """The log-probability of each piece, and of the end."""
    cut: bool = False
    """Never: a prompt that is too long is refused."""

    def to_json(self) -> dict[str, Any]:
        scored = {} if math.isnan(self.score) else {"score": round(self.score, 4)}
        answer: dict[str, Any] = {"text": self.text, **scored}
        if self.others:
            answer["others"] = [other.to_json() for other in self.others]
        return answer


@dataclass(frozen=True)
class BlockTally(Columns):
    """Of every block: what it cost, its tokens, its characters, and how many of the tokens are unknown."""

    has_loss: ClassVar[bool] = True
    vocabulary: str
    """Its digest."""
    nats: list[float]
    tokens: list[int]
    characters: list[int]
    unknown: list[int]

    @property
    def n_tokens(self) -> int:
        return sum(self.tokens)

    @property
    def truth(self) -> list[tuple[str, int, int]]:
        """Blocks of another vocabulary are other blocks."""
        return [(self.vocabulary, *of) for of in zip(self.tokens, self.characters, strict=True)]

    def weighed(self, weights_RN: Floats) -> Scores:
        """With the share of unknown tokens where there are any: what they stand for was not foretold."""
        sums_R4 = weights_RN @ np.array([self.nats, self.tokens, self.characters, self.unknown]).T
        nats_R, tokens_R, characters_R, unknown_R = sums_R4.T
        scores = foretold(nats_R, tokens_R, characters_R)
        return scores | ({"unknown": 100 * unknown_R / tokens_R} if any(self.unknown) else {})

    def metrics(self) -> dict[str, float]:
        return plainly(self)

    def signatures(self) -> dict[str, str]:
        return {}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}
