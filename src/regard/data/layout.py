"""What is scored of rows: each of them by itself, or what they hold together."""

from collections.abc import Iterable, Sequence
from typing import Any

from regard.data.cache import Encoder, Examples
from regard.data.histories import WindowedHistories
from regard.errors import DataError
from regard.files.row import Row


def scored(encoder: Encoder, rows: Iterable[Row], name: str) -> Sequence[Any]:
    """The examples to score; `name` is what errors call the data."""
    if encoder.layout is Examples:
        return encoder.encode(list(rows))
    if issubclass(encoder.layout, WindowedHistories):
        return encoder.layout.scored(encoder, rows)
    found = encoder.layout.of(encoder, rows)
    if not len(found):
        found.refuse_unfit(name)
        raise DataError(f"{name}: holds no text")
    return found
