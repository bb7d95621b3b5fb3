"""Parity check of an export: both engines answer the same inputs, and both score our answers.

Both sides search with a beam of the run's width ranked by probability alone, since every engine has a length
penalty of its own. An answer truncated at the maximum length does not count towards the share of identical
answers, as each engine truncates in its own way; its log-probabilities are compared all the same.
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
"""Largest difference of a log-probability; a different order of summation has caused 2e-5 at most."""
MIN_IDENTICAL = 0.99
"""Share of answers that must be identical; near ties may fall the other way."""
RECOMMENDED_INPUTS = 200
BATCH_TOKENS, BATCH_ROWS = 4096, 64

Tick = Callable[[int], None]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
A = TypeVar("A")
"""An input: a text, or a mapping where several texts are read together."""
A_contra = TypeVar("A_contra", contravariant=True)


class Answer(NamedTuple):
    text: str
    ids: tuple[int, ...]
    truncated: bool = False
    """True if it reached the maximum length instead of ending by itself."""


class Engine(Protocol[A_contra]):
    """One side of a parity check."""

    @property
    def name(self) -> str: ...

    def answer(self, inputs: Sequence[A_contra], /) -> list[Answer]: ...

    def score(self, inputs: Sequence[A_contra], answers: Sequence[Answer], /) -> list[list[float]]:
        """Log-probabilities of each answer's tokens, EOS included; a classifier gives those of all labels."""


@dataclass(frozen=True)
class Report:
    """Result of an export: how closely the other engine agrees, and how fast it is."""

    folder: Path
    engine: str
    n_inputs: int
    n_compared: int
    """Inputs whose answers are complete on both sides."""
    identical: float
    """Share of the complete answers that are identical; 1 if there are none."""
    difference: float
    """Largest difference of any log-probability."""
    our_speed: float
    """Texts per second in regard."""
    their_speed: float
    """Texts per second in the other engine."""
    n_bytes: int
    bleu: tuple[float, float] | None = None
    """BLEU of ours and theirs, for int8 with known references."""
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "engine": self.engine,
            "inputs": self.n_inputs,
            "compared": self.n_compared,
            "identical": round(self.identical, 4) if self.n_compared else None,
            "max_difference": self.difference,
            "texts_per_second": {"here": round(self.our_speed, 1), "there": round(self.their_speed, 1)},
            "bytes": self.n_bytes,
            "bleu": None if self.bleu is None else dict(zip(("here", "there"), self.bleu, strict=True)),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Comparison:
    n_complete: int
    """Pairs of answers of which neither is truncated."""
    identical: float
    """Share of the complete pairs whose answers are identical; 1 if there are none."""
    difference: float
    our_speed: float
    their_speed: float
    our_answers: list[Answer]
    their_answers: list[Answer]


def compare(
    ours: Engine[A], theirs: Engine[A], inputs: Sequence[A], sizes: Sequence[int], tick: Tick
) -> Comparison:
    """Compare two engines; `tick` counts every input three times: for both answers and for scoring."""
    batches = sorted_batches([(size,) for size in sizes], BATCH_TOKENS, BATCH_ROWS)
    our_answers, our_speed = _timed_answers(ours, inputs, batches, tick)
    their_answers, their_speed = _timed_answers(theirs, inputs, batches, tick)
    difference = 0.0
    for batch in batches:
        batch_inputs, batch_answers = [inputs[i] for i in batch], [our_answers[i] for i in batch]
        scores = zip(
            ours.score(batch_inputs, batch_answers), theirs.score(batch_inputs, batch_answers), strict=True
        )
        difference = max(difference, *(_difference(*pair) for pair in scores))
        tick(len(batch))
    pairs = zip(our_answers, their_answers, strict=True)
    complete = [pair for pair in pairs if not any(answer.truncated for answer in pair)]
    identical = sum(a == b for a, b in complete) / len(complete) if complete else 1.0
    return Comparison(
        len(complete), identical, difference, our_speed, their_speed, our_answers, their_answers
    )


def require_parity(comparison: Comparison, engine: str) -> None:
    """Raise RunError unless both sides agree."""
    difference, identical = comparison.difference, comparison.identical
    if not (difference <= TOLERANCE and identical >= MIN_IDENTICAL):
        raise RunError(
            f"{engine}: the exported model does not answer as the original does ({identical:.1%} of the "
            f"answers are identical, at least {MIN_IDENTICAL:.0%} must be; log-probabilities differ by up to "
            f"{difference:.2g}, at most {TOLERANCE:g} is allowed), so it was removed; please report it"
        )


def _timed_answers(
    engine: Engine[A], inputs: Sequence[A], batches: Sequence[Sequence[int]], tick: Tick
) -> tuple[list[Answer], float]:
    """Answers in the order of the inputs, and inputs per second; the last batch is run once as a warm-up."""
    engine.answer([inputs[i] for i in batches[-1]])
    answers: dict[int, Answer] = {}
    seconds = 0.0
    for batch in batches:
        started = time.perf_counter()
        answers |= zip(batch, engine.answer([inputs[i] for i in batch]), strict=True)
        seconds += time.perf_counter() - started
        tick(len(batch))
    return [answers[i] for i in range(len(inputs))], len(inputs) / seconds


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> float:
    if len(ours) != len(theirs):
        return float("inf")
    gaps = [abs(a - b) for a, b in zip(ours, theirs, strict=True)]
    return max(gap if gap == gap else float("inf") for gap in chain(gaps, [0.0]))


def log_softmax(logits: Floats) -> Floats:
    """Log-softmax over the last axis."""
    shifted = logits - logits.max(-1, keepdims=True)
    log_probs: Floats = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return log_probs
