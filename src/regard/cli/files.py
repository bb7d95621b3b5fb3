"""Files the verbs write: never over another one unless its name was given."""

from itertools import chain, count
from pathlib import Path

from regard.errors import RunError


def free(name: str) -> Path:
    """The name, or the first of name-2, name-3 … that nothing has yet."""
    path = Path(name)
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return next(candidate for candidate in chain([path], numbered) if not candidate.exists())


def write(path: Path, text: str) -> Path:
    try:
        path.write_text(text, "utf-8")
    except OSError as fault:
        raise RunError(f"{path}: cannot be written ({fault.strerror})") from fault
    return path
