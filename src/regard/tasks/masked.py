"""Texts with hidden pieces in batches, what fills them, and how well: the values of pretrain."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from regard.data.cache import Ints
from regard.errors import DataError
from regard.files.row import Row
from regard.metrics.language import MAX_LOSS
from regard.metrics.resample import Floats, Scores, unweighted
from regard.tasks.prediction import Ranked
from regard.tasks.shared import Columns, Padded
from regard.tasks.task import padded

FOLLOWS, DOES_NOT, NO_PAIR = 0, 1, -100
"""Of the second text; numbered as BERT does, and what cross entropy leaves out."""


@dataclass(frozen=True, slots=True)
class Document:
    """A row in pieces: a document, a part of one, or a text with blanks."""

    row: Row
    tokens: Ints
    lengths: Ints
    """Of each sentence."""


@dataclass(frozen=True, slots=True)
class Masked:
    row: Row
    tokens: Ints
    """Framed, and as they are seen."""
    segments: Ints
    places: Ints
    """Which of them are to be told;"""
    labels: Ints
    """what was there."""
    follows: int = NO_PAIR


@dataclass(frozen=True)
class MaskedTexts(Padded):
    tokens_BT: Tensor
    lengths_B: Tensor
    segments_BT: Tensor
    at_N: Tensor
    """Where something is hidden, among all of tokens_BT."""
    labels_N: Tensor
    follows_B: Tensor
    examples: tuple[Masked, ...]
    candidates: tuple[int, ...] = ()
    """Of a replay: the pieces whose probabilities are shown."""

    @classmethod
    def of(cls, examples: Sequence[Masked]) -> Self:
        tokens_BT = padded([example.tokens for example in examples])
        width = tokens_BT.shape[1]
        at = [row * width + example.places for row, example in enumerate(examples)]
        return cls(
            tokens_BT,
            torch.tensor([len(example.tokens) for example in examples]),
            padded([example.segments for example in examples]),
            torch.from_numpy(np.concatenate(at).astype(np.int64)),
            torch.from_numpy(np.concatenate([example.labels for example in examples]).astype(np.int64)),
            torch.tensor([example.follows for example in examples]),
            tuple(examples),
        )

    @property
    def counts(self) -> dict[str, int]:
        return {"masked": len(self.labels_N), "pairs": int((self.follows_B != NO_PAIR).sum())}

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.tokens_BT, self.lengths_B, self.segments_BT, self.at_N

    def hiding(self, pieces: Sequence[int], mask: int) -> Self:
        """A batch of one, once for each of these pieces, which is hidden too; its marks never are."""
        n, (_, width) = len(pieces), self.tokens_BT.shape
        tokens_BT = self.tokens_BT.repeat(n, 1)
        rows_B = torch.arange(n, device=tokens_BT.device)
        hidden_B = torch.tensor(pieces, device=tokens_BT.device)
        hidden_B = torch.where(hidden_B == 0, self.at_N[0], hidden_B)  # a blank, where nothing changes
        tokens_BT[rows_B, hidden_B] = mask
        return replace(
            self,
            tokens_BT=tokens_BT,
            lengths_B=self.lengths_B.expand(n),
            segments_BT=self.segments_BT.expand(n, -1),
            at_N=(self.at_N + rows_B[:, None] * width).flatten(),
            labels_N=self.labels_N.repeat(n),
            follows_B=self.follows_B.expand(n),
            examples=self.examples * n,
        )


@dataclass(frozen=True)
class Blank:
    start: int
    """Character of the text given, counted from 0,"""
    end: int
    """and the one before which it ends."""
    candidates: tuple[tuple[int, str, float], ...]
    """Pieces, as they are written, and how likely each is; the likeliest first."""

    def to_json(self) -> dict[str, Any]:
        told = [{"text": name, "probability": round(p, 4)} for _, name, p in self.candidates]
        return {"start": self.start, "end": self.end, "candidates": told}


@dataclass(frozen=True)
class Filled:
    text: str
    """With the likeliest piece in each blank."""
    blanks: tuple[Blank, ...]
    cut: bool = False
    """Never: a text that is too long is refused."""

    def ranked(self) -> list[Ranked]:
        return [(self.text, None)]

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text, "blanks": [blank.to_json() for blank in self.blanks]}


class Told(NamedTuple):
    """Of an example: its hidden pieces, what they cost, how many were told; the same of its pair."""

    masked: int
    nats: float
    hits: int
    pairs: int
    pair_nats: float
    pair_hits: int


@dataclass(frozen=True)
class MaskedTally(Columns):
    has_loss: ClassVar[bool] = True
    vocabulary: str
    """Its digest."""
    seen: list[int]
    """A checksum of what was seen of each example."""
    told: list[Told]

    @property
    def n_tokens(self) -> int:
        return sum(one.masked for one in self.told)

    @property
    def truth(self) -> list[tuple[str, int, int]]:
        """What another vocabulary hides is something else, and so is what was hidden elsewhere."""
        asked = zip(self.seen, self.told, strict=True)
        return [(self.vocabulary, seen, one.masked) for seen, one in asked]

    def weighed(self, weights_RN: Floats) -> Scores:
        """Without pairs there is nothing to say about what follows."""
        sums_R6 = weights_RN @ np.array(self.told, np.float64).reshape(-1, 6)
        masked_R, nats_R, hits_R, pairs_R, pair_nats_R, pair_hits_R = sums_R6.T
        masked_R, among_R = np.maximum(1, masked_R), np.maximum(1, pairs_R)
        loss_R = nats_R / masked_R
        scores = {
            "loss": loss_R + pair_nats_R / among_R,
            "mlm_accuracy": 100 * hits_R / masked_R,
            "mlm_perplexity": np.exp(np.minimum(loss_R, MAX_LOSS)),
        }
        if any(one.pairs for one in self.told):
            scores["nsp_accuracy"] = 100 * pair_hits_R / among_R
        return scores

    def metrics(self) -> dict[str, float]:
        """DataError where nothing was told, which would look like telling all of it."""
        if not self.n_tokens:
            raise DataError(
                "nothing could be hidden to be told: the vocabulary knows no piece of the texts that were to "
                "be scored; give others, or a vocabulary that was learnt from such texts"
            )
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        return {}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}
