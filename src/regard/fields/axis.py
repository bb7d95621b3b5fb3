"""The units along one side of a map: tokens of a text, patches of a picture, labels, words of an answer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """Labels are display text from anywhere, never markup."""

    name: str
    labels: tuple[str, ...]
    unit: str = "token"
    fixed: frozenset[int] = frozenset()
    """Units that are never left out to measure what matters, such as the mark at the end of a text."""
    grid: tuple[int, int] | None = None
    """Rows and columns, where the units lie in a plane."""
    seconds: tuple[float, ...] | None = None
    """When each unit begins, where the units lie in time."""
    picture: bytes | None = None
    """A PNG of what the units are cut from."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def free(self) -> list[int]:
        """Units that can be left out."""
        return [unit for unit in range(len(self)) if unit not in self.fixed]


def ended(name: str, labels: tuple[str, ...]) -> Axis:
    """Builds the axis of a text whose last unit is its end mark."""
    return Axis(name, labels, fixed=frozenset({len(labels) - 1}))
