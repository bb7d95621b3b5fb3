"""What the data decides about a model: sizes learnt by the task, never written into a config."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Width = Mapping[str, Any]
"""JSON that a field tells a model: {"vocab": 8000}, {"classes": 3}, {"tags": ["B", "I", "O"]}."""


@dataclass(frozen=True)
class Widths:
    input: Width
    """Width of what the encoder reads."""
    target: Width = field(default_factory=dict)
    """Width of what is answered; empty where it is a place in the input."""
    shared: bool = False
    """Whether input and target have one vocabulary."""

    @property
    def n_outputs(self) -> int:
        """Scores that a model gives for each thing it answers; 0 where the target has no width."""
        return max((size if isinstance(size, int) else len(size) for size in self.target.values()), default=0)
