"""Readers of vocabulary files, ours or made elsewhere: sizes bounded, ids numbered as an embedding needs
them.
"""

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
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: cannot be read as JSON ({error}); is it truncated?") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: should hold a JSON object")
    return content


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


def checked_vocabulary(path: Path, vocabulary: Any) -> dict[str, int]:
    """The vocabulary; CheckpointError unless its ids are 0, 1, 2 …, each for one token."""
    if not isinstance(vocabulary, dict) or not all(type(id_) is int for id_ in vocabulary.values()):
        raise CheckpointError(f"{path}: its vocabulary is not a table of tokens with their ids")
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise CheckpointError(f"{path}: the ids of its vocabulary are not 0, 1, 2 …, each used once")
    if broken := [token for token in vocabulary if UNDECODED.search(token)]:
        raise CheckpointError(f"{path}: the token {quoted(broken[0])} holds half of a surrogate pair")
    return vocabulary


def added_tokens(path: Path, content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name and id of every token that a tokenizer.json lists beside the vocabulary."""
    listed = content.get("added_tokens") or []
    for token in listed if isinstance(listed, list) else [listed]:
        match token:
            case {"content": str(name), "id": id_}:
                yield name, id_
            case _:
                raise CheckpointError(f"{path}: added_tokens has {token!r}, which is not a token with an id")
