"""Files of a vocabulary, ours or made elsewhere: bounded, and numbered as an embedding needs it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard import durable
from regard.errors import CheckpointError, DataError, quoted
from regard.files.lines import UNDECODED


@contextmanager
def without_panic() -> Iterator[None]:
    """Raise a panic of the tokenizers library, which is no Exception, as a DataError."""
    try:
        yield
    except BaseException as fault:
        if type(fault).__name__ != "PanicException":
            raise
        raise DataError(f"the tokenizers library failed: {fault}") from fault


def read_object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: cannot be read as JSON ({error}); is it truncated?") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: should hold a JSON object")
    return found


def read_text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path}: cannot be read as UTF-8 ({error}); is it damaged?") from error


def read_bytes(path: Path) -> bytes:
    try:
        return durable.read_bytes(path)
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error.strerror}); is the folder complete?"
        ) from error


def numbered(path: Path, vocabulary: Any) -> dict[str, int]:
    """Every number has a piece, and every piece a number."""
    if not isinstance(vocabulary, dict) or not all(type(place) is int for place in vocabulary.values()):
        raise CheckpointError(f"{path}: its vocabulary is not a list of pieces with their numbers")
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise CheckpointError(f"{path}: its pieces are not numbered 0, 1, 2 …, or some occur twice")
    if broken := [piece for piece in vocabulary if UNDECODED.search(piece)]:
        raise CheckpointError(f"{path}: the piece {quoted(broken[0])} holds half of a surrogate pair")
    return vocabulary


def added(path: Path, content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name and number of every piece that a tokenizer.json lists beside the vocabulary."""
    listed = content.get("added_tokens") or []
    for token in listed if isinstance(listed, list) else [listed]:
        match token:
            case {"content": str(name), "id": place}:
                yield name, place
            case _:
                raise CheckpointError(f"{path}: adds {token!r} to the vocabulary, which regard cannot")
