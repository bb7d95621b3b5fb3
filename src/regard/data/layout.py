"""How the examples of a task lie: a row each, a text without seams in blocks, or documents in pairs."""

from collections.abc import Iterable, Sequence
from typing import Any

from regard.data.examples import Encoder, Examples
from regard.data.packed import Packed, Packing, refuse_short
from regard.data.paired import Paired, Pairing, refuse_unpaired
from regard.errors import DataError
from regard.files.source import Row


def layout(encoder: Encoder[Any]) -> type[Examples]:
    """Of what is trained on."""
    if isinstance(encoder, Pairing):
        return Paired
    return Packed if isinstance(encoder, Packing) else Examples


def scored(encoder: Encoder[Any], rows: Iterable[Row], name: str) -> Sequence[Any]:
    """What is scored of rows: each of them, or what they hold together; `name` is what errors call them."""
    kind = layout(encoder)
    if kind is Examples:
        return encoder.encode(list(rows))
    found = kind.of(encoder, rows)
    if not len(found):
        raise DataError(f"{name}: holds no text")
    return found


def refuse_unfit(examples: Examples, name: str) -> None:
    """Training data of which nothing can be learnt."""
    if isinstance(examples, Packed):
        refuse_short(examples, name)
    if isinstance(examples, Paired):
        refuse_unpaired(examples, name)
