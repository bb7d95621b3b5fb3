"""Labels as classifiers keep them, with what each counts in training."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from torch import Tensor

from regard.errors import CheckpointError, DataError, RecipeError, did_you_mean
from regard.files.lines import UNDECODED
from regard.files.row import Row

ClassWeights = Literal["balanced"] | dict[str, Annotated[float, Field(ge=1e-6, le=1e6)]] | None
"""By label, 1 where none is given."""
LONGEST = 1000
"""Characters of a label."""


def refuse_texts(labels: Iterable[str], row: Row, role: str) -> None:
    """DataError for what is so long that it can be no label, and no tag."""
    longest = max(map(len, labels), default=0)
    if longest > LONGEST:
        raise DataError(
            f"{row.where}: a {role.removesuffix('s')} of {longest:,} characters looks like text; "
            f"choose the right column with data.columns.{role}"
        )


def weights(
    given: ClassWeights, counts: Mapping[str, int], balanced: Callable[[int], float]
) -> list[float] | None:
    """Of the labels in their order; `balanced` tells the weight of one that so many texts have."""
    names = sorted(counts)
    if given is None:
        return None
    if given == "balanced":
        return [balanced(counts[name]) for name in names]
    assert not isinstance(given, str)
    for name in given:
        if name not in counts:
            near = did_you_mean(name, names)
            raise RecipeError(f"task.class_weights.{name}: no such label in the training data{near}")
    return [given.get(name, 1.0) for name in names]


def write_labels(folder: Path, labels: Sequence[str], weights_C: Tensor | None) -> None:
    _write(folder / "labels.json", labels)
    if weights_C is not None:
        _write(folder / "label_weights.json", weights_C.tolist())


def read_labels(folder: Path) -> tuple[list[str], list[float] | None]:
    labels = _read(folder / "labels.json")
    if not (
        isinstance(labels, list)
        and all(isinstance(label, str) and not UNDECODED.search(label) for label in labels)
        and len(set(labels)) == len(labels) > 1
    ):
        raise CheckpointError(
            f"{folder / 'labels.json'}: should hold a list of at least two labels, all different"
        )
    path = folder / "label_weights.json"
    if not path.is_file():
        return labels, None
    found = _read(path)
    if not (isinstance(found, list) and len(found) == len(labels) and all(map(_is_weight, found))):
        raise CheckpointError(f"{path}: should hold a number above 0 for each of {len(labels)} labels")
    return labels, found


def _is_weight(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _write(path: Path, value: Sequence[Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: the labels cannot be read ({error})") from error
