"""Text from anywhere made safe for terminals, single lines and JSON."""

import math
import re
from collections.abc import Callable
from typing import Any

# Characters that a terminal obeys, or that reorder text. Joiners stay: some scripts need them.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def printable(text: str) -> str:
    """The text with each control character written as its code point: ESC is `[U+001B]`."""
    return _OBEYED.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def escaped(json_text: str) -> str:
    """JSON with control characters written as escapes, which mean the same."""
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


def one_line(text: str) -> str:
    """The text on one line: line ends and other controls become a space."""
    return _BREAKS.sub(" ", text)


def by_line(clean: Callable[[str], str], text: str) -> str:
    """The text cleaned line by line: its line ends stay."""
    return "\n".join(map(clean, text.split("\n")))


def finite(value: Any) -> Any:
    """The value with None for NaN and infinity, which JSON lacks; a diverged model may score them."""
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def clock(seconds: float) -> str:
    """A duration as 4:05 or 1:04:05."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
