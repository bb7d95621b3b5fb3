"""Helpers of the batches of all tasks."""

from dataclasses import dataclass, fields, replace
from typing import Self

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
