"""Files the verbs write: never over another one unless its name was given."""

from collections.abc import Callable
from itertools import chain, count
from pathlib import Path

from regard import durable
from regard.errors import RunError


def free(name: str) -> Path:
    """The name, or the first of name-2, name-3 … that nothing has yet."""
    path = Path(name)
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return next(candidate for candidate in chain([path], numbered) if not candidate.exists())


def write(path: Path, text: str) -> Path:
    return fill(path, lambda place: place.write_text(text, "utf-8"))


def fill(path: Path, fill_it: Callable[[Path], object]) -> Path:
    """Whole or not at all; what is a link or a device stays one."""
    try:
        durable.fill_named(path, fill_it)
    except OSError as fault:
        raise RunError(f"{path}: cannot be written ({fault.strerror or fault})") from fault
    return path
