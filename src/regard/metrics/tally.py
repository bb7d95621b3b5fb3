"""Columns and sums that the tallies of all tasks share."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self


@dataclass(frozen=True)
class Columns:
    """A tally: lists with an entry for each example, beside what holds for all of them."""

    has_loss: ClassVar[bool] = False

    def __add__(self, other: Self) -> Self:
        return replace(self, **{name: own + getattr(other, name) for name, own in self._lists().items()})

    def taken(self, places: Sequence[int]) -> Self:
        """The tally of the examples at these places."""
        return replace(self, **{name: [own[at] for at in places] for name, own in self._lists().items()})

    def _lists(self) -> dict[str, list[Any]]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, list)}
