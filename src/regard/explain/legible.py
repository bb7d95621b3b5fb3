"""Untrusted text made safe and legible.

Labels come from data and vocabularies. A bidi control can reorder the words around it, zero-width characters
are invisible, a terminal obeys ESC and XML refuses NUL: `visible` writes all of these as code points, for the
page, the SVG and the terminal alike. Widths are in ems, because a Chinese character is as wide as it is high.
"""

from unicodedata import category, combining, east_asian_width

_INVISIBLE_CATEGORIES = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
_INVISIBLE_LETTERS = (
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # fillers and joiners that draw nothing
)
_JOINER = "\u200d"  # makes one emoji of several
_SKIN_TONES = {chr(code) for code in range(0x1F3FB, 0x1F400)}

_LATIN_EMS = 0.56


def visible(text: str) -> str:
    """Write invisible characters as [U+202E], line ends as ⏎, and a lone accent on a dotted circle."""
    if not text:
        return "∅"
    if text.isspace() and text.isprintable():
        return "␣" * len(text)
    escaped = "".join(
        char if _is_visible(text, at) else "⏎" if char == "\n" else f"[U+{ord(char):04X}]"
        for at, char in enumerate(text)
    )
    return f"◌{escaped}" if category(escaped[0]).startswith("M") else escaped


def _is_visible(text: str, at: int) -> bool:
    char = text[at]
    if char == _JOINER:
        around = text[:at].rstrip("\ufe0f")[-1:] + text[at + 1 : at + 2]
        return len(around) == 2 and all(category(side) == "So" or side in _SKIN_TONES for side in around)
    is_noncharacter = ord(char) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(char) <= 0xFDEF
    is_invisible = category(char) in _INVISIBLE_CATEGORIES or char in _INVISIBLE_LETTERS
    return not is_noncharacter and not is_invisible


def is_wide(char: str) -> bool:
    """True if a character is Chinese, Japanese, Korean or an emoji, and so drawn as wide as high."""
    return east_asian_width(char) in "WF"


def ems(text: str) -> float:
    """Estimate the width of a text, in multiples of the font size."""
    return sum(1.0 if is_wide(char) else _LATIN_EMS for char in text if not _attaches(char))


def graphemes(text: str) -> list[str]:
    """Split a text into what readers call characters: a base with its accents, tones and joined emoji."""
    parts: list[str] = []
    for char in text:
        if parts and (_attaches(char) or parts[-1].endswith(_JOINER)):
            parts[-1] += char
        else:
            parts.append(char)
    return parts


def _attaches(char: str) -> bool:
    return combining(char) > 0 or category(char) in {"Mn", "Me"} or char == _JOINER or char in _SKIN_TONES


def stacks(text: str) -> bool:
    """True if a column label is better stacked (mostly Chinese) than rotated."""
    parts = graphemes(text)
    return 2 * sum(is_wide(part[0]) for part in parts) >= len(parts)


def shortened(text: str, limit: float) -> str:
    """Truncate a text to `limit` ems, with an ellipsis."""
    if ems(text) <= limit:
        return text
    kept = ""
    for part in graphemes(text):
        if ems(kept + part) > limit - 1:
            break
        kept += part
    return kept + "…"


def wrapped(text: str, limit: float) -> list[str]:
    """Wrap a text into lines of at most `limit` ems, broken at spaces and beside wide characters."""
    lines = [""]
    for atom in _atoms(text, limit):
        if ems((lines[-1] + atom).rstrip()) > limit and lines[-1]:
            lines.append("")
        lines[-1] += atom if lines[-1] else atom.lstrip()
    return [line.rstrip() for line in lines]


def _atoms(text: str, limit: float) -> list[str]:
    """Split a text where a line may break: words with the space before them, and single wide characters."""
    atoms = [""]
    for part in graphemes(text):
        ends_here = part.isspace() or is_wide(part[0]) or (atoms[-1] and is_wide(atoms[-1][-1]))
        if ends_here or ems(atoms[-1] + part) > limit:
            atoms.append("")
        atoms[-1] += part
    return [atom for atom in atoms if atom]
