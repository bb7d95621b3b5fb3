"""Who hears of a search while it goes on: how answers begin, what they are, and all that was considered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regard.decode.hypothesis import Hypothesis
from regard.decode.tree import Tree

Begins = Callable[[int, Sequence[int]], None]
"""(source, tokens): hears how a source's answer will begin, as soon as that is certain."""
Ends = Callable[[int, Sequence[Hypothesis]], None]
"""(source, its hypotheses, best first): hears of each source once, as soon as its own search has ended."""


def untold(source: int, said: object) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class Listener:
    begins: Begins = untold
    ends: Ends = untold
    tree: Tree | None = None
    """Records the search for a single source."""


NOBODY = Listener()
