"""Who hears of a search while it goes on: how answers begin, what they are, and all that was considered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from regard.decode.hypothesis import Hypothesis
from regard.decode.tree import Tree

T = TypeVar("T")
Begins = Callable[[int, Sequence[int]], None]
"""(source, tokens): hears how a source's answer will begin, as soon as that is certain."""
Ends = Callable[[int, Sequence[Hypothesis]], None]
"""(source, its hypotheses, best first): hears of each source once, as soon as its own search has ended."""


def untold(source: int, said: object) -> None:
    """Nobody listens."""


def among(places: Sequence[int], tell: Callable[[int, T], None]) -> Callable[[int, T], None]:
    """For some of the sources, which have these places among all."""
    return tell if tell is untold else lambda place, said: tell(places[place], said)


@dataclass(frozen=True)
class Listener:
    begins: Begins = untold
    ends: Ends = untold
    tree: Tree | None = None
    """Records the search for a single source."""


NOBODY = Listener()
