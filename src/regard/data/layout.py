"""Examples to score: one for each row, or made from all rows together, as the layout says."""

from collections.abc import Iterable, Sequence
from typing import Any

from regard.data.cache import Encoder, Examples
from regard.data.histories import WindowedHistories
from regard.errors import DataError
from regard.files.row import Row


def scored(encoder: Encoder, rows: Iterable[Row], name: str) -> Sequence[Any]:
    """The examples to score; `name` is the data's name in errors."""
    if encoder.layout is Examples:
        return encoder.encode(list(rows))
    if issubclass(encoder.layout, WindowedHistories):
        return encoder.layout.scored(encoder, rows)
    examples = encoder.layout.of(encoder, rows)
    if not len(examples):
        examples.refuse_unfit(name)
        raise DataError(f"{name}: holds no text")
    return examples
