"""What a search finds: continuations, and in the end answers."""

from dataclasses import dataclass

from torch import Tensor

Continuations = tuple[Tensor, Tensor, Tensor]
"""parents, tokens and scores of the best continuations of each source, best first."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """`ids` without begin and end; `log_prob` of the whole, its end included; `score` ranks hypotheses:

    log_prob / ((5 + length) / 6) ^ length_penalty   (Wu et al. 2016), the end counted in the length.
    """

    ids: tuple[int, ...]
    log_prob: float
    score: float
    steps: tuple[float, ...] = ()
    """The log-probability of each of its tokens and of its end; they add up to `log_prob`."""


def normalised(log_prob: float, length: int, length_penalty: float) -> float:
    """`length` counts the end."""
    return log_prob / float(((5 + length) / 6) ** length_penalty)
