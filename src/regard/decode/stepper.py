"""The protocol of models that generate token by token: all that a search needs of them.

Rows are hypotheses; each source has the same number of neighbouring rows (its beams). A state is a value:
searches pass it in and out and never look inside.
"""

from typing import Protocol, TypeVar

from torch import Tensor

S = TypeVar("S")


class Stepper(Protocol[S]):
    def step(self, last_B: Tensor, state: S) -> tuple[Tensor, S]:
        """logits_BV for the token after `last_B`, and the state that knows of `last_B`."""

    def select(self, state: S, rows_B: Tensor, sources_B: Tensor | None = None) -> S:
        """The state whose rows are `rows_B` of this one. What belongs to a source (its encoding) is left
        alone unless `sources_B` says which sources remain."""
