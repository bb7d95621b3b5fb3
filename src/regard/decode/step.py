"""A search is a generator of steps: who ended at each, and how the answers of the others will begin."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from regard.decode.hypothesis import Continuations, Hypothesis

T = TypeVar("T")


@dataclass(frozen=True)
class Step:
    ended: Sequence[tuple[int, list[Hypothesis]]]
    """Each source whose own search ended here, with its hypotheses, best first; each source ends once."""
    beginnings: Callable[[], Mapping[int, Sequence[int]]] = dict
    """Computes the tokens with which the answer of each source that goes on is certain to begin."""
    groups: Sequence[tuple[Continuations, Continuations]] = ()
    """The best continuations of each group of a beam, and those that go on."""

    def at(self, places: Sequence[int]) -> Self:
        """The step of sources that have these places among others."""
        return replace(
            self,
            ended=[(places[source], hypotheses) for source, hypotheses in self.ended],
            beginnings=lambda: {places[source]: ids for source, ids in self.beginnings().items()},
        )


def in_order(ended: Iterable[tuple[int, T]]) -> list[T]:
    """The answers in the order of their places, whenever each ended."""
    return [answer for _, answer in sorted(ended, key=lambda pair: pair[0])]


def hypotheses(steps: Iterable[Step]) -> list[list[Hypothesis]]:
    """Runs a search to its end: the hypotheses of every source, best first."""
    return in_order(pair for step in steps for pair in step.ended)
