"""The units along one side of a map: tokens of a text, patches of a picture, labels, words of an answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Axis:
    """Labels are display text from anywhere, never markup."""

    name: str
    labels: tuple[str, ...]
    unit: str = "token"
    fixed: frozenset[int] = frozenset()
    """Units that are never left out to measure what matters, such as the mark at the end of a text."""
    grid: tuple[int, int] | None = None
    """Rows and columns, where the units lie in a plane: all but the fixed ones, in reading order."""
    spans: tuple[tuple[int, int], ...] | None = None
    """Begin and end of each unit in what the input is made of, where one unit covers several."""
    seconds: tuple[float, ...] | None = None
    """Begin of each unit in seconds, where the units lie in time."""
    picture: bytes | None = None
    """A PNG of what the units are cut from."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def units(self) -> str:
        """The plural of its unit."""
        return plural(self.unit)

    def runs(self, size: int, unit: str, *, at_end: bool = False) -> "Axis":
        """The axis of runs of so many units; the last one may be shorter, or `at_end` the first."""
        n = len(self)
        begins = range(-(-n % size) if at_end else 0, n, size)
        return self.covered([(max(begin, 0), min(begin + size, n)) for begin in begins], unit)

    def covered(self, parts: Sequence[tuple[int, int]], unit: str) -> "Axis":
        """The axis of parts that cover several units each, from … up to …"""
        spans = self.spans or tuple((at, at + 1) for at in range(len(self)))
        return replace(
            self,
            labels=tuple(_span(self.labels[begin], self.labels[end - 1]) for begin, end in parts),
            unit=unit,
            spans=tuple((spans[begin][0], spans[end - 1][1]) for begin, end in parts),
            seconds=None if self.seconds is None else tuple(self.seconds[begin] for begin, _ in parts),
        )

    @property
    def free(self) -> list[int]:
        """Units that can be left out."""
        return [unit for unit in range(len(self)) if unit not in self.fixed]


def plural(unit: str) -> str:
    return "patches" if unit == "patch" else f"{unit}s"


def _span(first: str, last: str) -> str:
    return first if first == last else f"{first} … {last}"


def ended(name: str, labels: tuple[str, ...]) -> Axis:
    """Builds the axis of a text whose last unit is its end mark."""
    return Axis(name, labels, fixed=frozenset({len(labels) - 1}))
