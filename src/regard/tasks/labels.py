"""Weights of labels in training."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from torch import Tensor

from regard.errors import CheckpointError, RecipeError, did_you_mean
from regard.fields.label import read_list, write_list

ClassWeights = Literal["balanced"] | dict[str, Annotated[float, Field(ge=1e-6, le=1e6)]] | None
"""Weight by label, 1 where none is given."""


def class_weights(
    setting: ClassWeights, counts: Mapping[str, int], balanced: Callable[[int], float]
) -> list[float] | None:
    """The weights of the labels in their order; `balanced` gives that of one that so many examples have."""
    names = sorted(counts)
    if setting is None:
        return None
    if setting == "balanced":
        return [balanced(counts[name]) for name in names]
    assert not isinstance(setting, str)
    for name in setting:
        if name not in counts:
            near = did_you_mean(name, names)
            raise RecipeError(f"task.class_weights.{name}: no such label in the training data{near}")
    return [setting.get(name, 1.0) for name in names]


def write_weights(folder: Path, weights_C: Tensor | None) -> None:
    if weights_C is not None:
        write_list(folder / "label_weights.json", weights_C.tolist())


def read_weights(folder: Path, n_labels: int) -> list[float] | None:
    path = folder / "label_weights.json"
    if not path.is_file():
        return None
    weights = read_list(path)
    if not (isinstance(weights, list) and len(weights) == n_labels and all(map(_is_weight, weights))):
        raise CheckpointError(f"{path}: should hold a number above 0 for each of {n_labels} labels")
    return weights


def _is_weight(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
