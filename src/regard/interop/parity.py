"""The proof of an export: both engines are asked the same, and each says how likely our answers are.

What is compared is what both can be asked for: beams of the run's width that rank by probability alone, since
every engine has a length penalty of its own. Where an answer was cut off at the longest length it is left out
of the share, as each engine cuts in its own way; the probability of ours counts all the same.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.data.batching import sorted_batches
from regard.errors import RunError

TOLERANCE = 1e-3
"""Of a log-probability; summing in another order has made 2e-5 at most."""
LEAST_ALIKE = 0.99
"""Of the answers: near ties may fall the other way."""
ENOUGH = 200
"""Inputs that are asked for."""
BATCH_TOKENS, BATCH_ROWS = 4096, 64

Tick = Callable[[int], None]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
A = TypeVar("A")
"""What is asked: a text, or a mapping where several are read together."""
A_contra = TypeVar("A_contra", contravariant=True)


class Answer(NamedTuple):
    text: str
    ids: tuple[int, ...]
    cut: bool = False
    """It did not end by itself."""


class Engine(Protocol[A_contra]):
    """Who answers; both sides are one."""

    @property
    def name(self) -> str: ...

    def answer(self, asked: Sequence[A_contra], /) -> list[Answer]: ...

    def score(self, asked: Sequence[A_contra], answers: Sequence[Answer], /) -> list[list[float]]:
        """The log-probabilities of what an answer consists of, its end included; of a label, all labels'."""


@dataclass(frozen=True)
class Report:
    """What an export is worth."""

    folder: Path
    engine: str
    n_inputs: int
    n_compared: int
    """Inputs whose answers ended by themselves on both sides."""
    identical: float
    """The share of these answers that are the same to the letter; 1 if there are none."""
    difference: float
    """The largest one, of any log-probability."""
    speed_here: float
    speed_there: float
    """Texts a second."""
    n_bytes: int
    bleu: tuple[float, float] | None = None
    """Here and there, where rounding is wanted (int8) and references are known."""
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "engine": self.engine,
            "inputs": self.n_inputs,
            "compared": self.n_compared,
            "identical": round(self.identical, 4) if self.n_compared else None,
            "max_difference": self.difference,
            "texts_per_second": {"here": round(self.speed_here, 1), "there": round(self.speed_there, 1)},
            "bytes": self.n_bytes,
            "bleu": None if self.bleu is None else dict(zip(("here", "there"), self.bleu, strict=True)),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Comparison:
    n_whole: int
    """Answers that ended by themselves."""
    identical: float
    """Of these; 1 if there are none."""
    difference: float
    speed_here: float
    speed_there: float
    answers_here: list[Answer]
    answers_there: list[Answer]


def compare(
    here: Engine[A], there: Engine[A], asked: Sequence[A], sizes: Sequence[int], tick: Tick
) -> Comparison:
    """`tick` hears of everything asked three times: answered here, answered there, scored by both."""
    batches = sorted_batches([(size,) for size in sizes], BATCH_TOKENS, BATCH_ROWS)
    ours, speed_here = _answered(here, asked, batches, tick)
    theirs, speed_there = _answered(there, asked, batches, tick)
    difference = 0.0
    for batch in batches:
        own, said = [asked[i] for i in batch], [ours[i] for i in batch]
        told = zip(here.score(own, said), there.score(own, said), strict=True)
        difference = max(difference, *(_difference(*pair) for pair in told))
        tick(len(batch))
    whole = [pair for pair in zip(ours, theirs, strict=True) if not any(answer.cut for answer in pair)]
    identical = sum(a == b for a, b in whole) / len(whole) if whole else 1.0
    return Comparison(len(whole), identical, difference, speed_here, speed_there, ours, theirs)


def require(found: Comparison, engine: str) -> None:
    """RunError unless both sides said the same."""
    if not (found.difference <= TOLERANCE and found.identical >= LEAST_ALIKE):
        raise RunError(
            f"{engine}: what was written does not answer as this model does ({found.identical:.1%} of the "
            f"answers are the same, at least {LEAST_ALIKE:.0%} must be; log-probabilities differ by up to "
            f"{found.difference:.2g}, at most {TOLERANCE:g} may be), so it was removed; please report it"
        )


def _answered(
    engine: Engine[A], asked: Sequence[A], batches: Sequence[Sequence[int]], tick: Tick
) -> tuple[list[Answer], float]:
    """In the order asked, and how many a second; to warm up, the last batch is answered beforehand too."""
    engine.answer([asked[i] for i in batches[-1]])
    found: dict[int, Answer] = {}
    seconds = 0.0
    for batch in batches:
        begun = time.perf_counter()
        found |= zip(batch, engine.answer([asked[i] for i in batch]), strict=True)
        seconds += time.perf_counter() - begun
        tick(len(batch))
    return [found[i] for i in range(len(asked))], len(asked) / seconds


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> float:
    if len(ours) != len(theirs):
        return float("inf")
    gaps = [abs(a - b) for a, b in zip(ours, theirs, strict=True)]
    return max(gap if gap == gap else float("inf") for gap in chain(gaps, [0.0]))


def log_softmax(logits: Floats) -> Floats:
    """Over the last axis."""
    shifted = logits - logits.max(-1, keepdims=True)
    log_probs: Floats = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return log_probs
