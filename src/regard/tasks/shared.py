"""What the batches of all tasks have in common, and the tallies of all tasks."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from regard.fields.field import Arrays
from regard.layers.inputs import Inputs


def tensors(arrays: Arrays) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def moved(inputs: Inputs, device: torch.device) -> dict[str, Tensor]:
    return {name: tensor.to(device) for name, tensor in inputs.items()}


@dataclass(frozen=True)
class Padded:
    """A batch: tensors, beside the examples they were made of."""

    def to(self, device: torch.device) -> Self:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        moved = {name: value.to(device) for name, value in values.items() if isinstance(value, Tensor)}
        return replace(self, **moved)


@dataclass(frozen=True)
class Columns:
    """A tally: lists with an entry for each example, beside what holds for all of them."""

    has_loss: ClassVar[bool] = False

    def __add__(self, other: Self) -> Self:
        return replace(self, **{name: own + getattr(other, name) for name, own in self._lists().items()})

    def taken(self, places: Sequence[int]) -> Self:
        """That of the examples at these places."""
        return replace(self, **{name: [own[at] for at in places] for name, own in self._lists().items()})

    def _lists(self) -> dict[str, list[Any]]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, list)}
