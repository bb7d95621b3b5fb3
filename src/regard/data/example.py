"""An example: a row, encoded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.fields.field import Arrays
from regard.files.row import Row


@dataclass(frozen=True, slots=True)
class Example:
    row: Row
    arrays: Arrays
    """The arrays that the cache keeps, by name."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Facts known only when it was just encoded, such as whether it was truncated."""
