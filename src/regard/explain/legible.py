"""Text from anywhere, made safe and fit to look at.

Labels come from data and vocabularies. A bidi control can reorder the words around it, a zero-width character
hides, a terminal obeys ESC and XML refuses NUL: `visible` writes all of these as their code points, once for
the page, the SVG and the terminal. Widths are in ems, because a Chinese character is as wide as it is high.
"""

from unicodedata import category, combining, east_asian_width

_UNSEEN_CATEGORIES = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
_UNSEEN_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # fillers and joiners that draw nothing
_JOINER = "\u200d"  # makes one emoji of several
_SKIN_TONES = {chr(code) for code in range(0x1F3FB, 0x1F400)}

_LATIN_EMS = 0.56


def visible(text: str) -> str:
    """All that is unseen is written as [U+202E], a line end as ⏎; a lone accent stands on a dotted circle."""
    if not text:
        return "∅"
    if text.isspace() and text.isprintable():
        return "␣" * len(text)
    shown = "".join(
        char if _is_seen(text, at) else "⏎" if char == "\n" else f"[U+{ord(char):04X}]"
        for at, char in enumerate(text)
    )
    return f"◌{shown}" if category(shown[0]).startswith("M") else shown


def _is_seen(text: str, at: int) -> bool:
    char = text[at]
    if char == _JOINER:
        around = text[:at].rstrip("\ufe0f")[-1:] + text[at + 1 : at + 2]
        return len(around) == 2 and all(category(side) == "So" or side in _SKIN_TONES for side in around)
    is_noncharacter = ord(char) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(char) <= 0xFDEF
    return not is_noncharacter and category(char) not in _UNSEEN_CATEGORIES and char not in _UNSEEN_LETTERS


def is_wide(char: str) -> bool:
    """Chinese, Japanese, Korean and emoji: drawn as wide as high, and upright in a vertical line."""
    return east_asian_width(char) in "WF"


def ems(text: str) -> float:
    """About how wide the text is drawn, in multiples of the font size."""
    return sum(1.0 if is_wide(char) else _LATIN_EMS for char in text if not _attaches(char))


def graphemes(text: str) -> list[str]:
    """What a reader calls characters: a base with its accents, tones and joined emoji."""
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
    """Whether a narrow column label is better stacked (mostly Chinese) than turned on its side."""
    parts = graphemes(text)
    return 2 * sum(is_wide(part[0]) for part in parts) >= len(parts)


def shortened(text: str, limit: float) -> str:
    """The text, or its beginning and an ellipsis, within `limit` ems."""
    if ems(text) <= limit:
        return text
    kept = ""
    for part in graphemes(text):
        if ems(kept + part) > limit - 1:
            break
        kept += part
    return kept + "…"


def wrapped(text: str, limit: float) -> list[str]:
    """Lines of at most `limit` ems, broken at spaces and anywhere beside a wide character."""
    lines = [""]
    for atom in _atoms(text, limit):
        if ems((lines[-1] + atom).rstrip()) > limit and lines[-1]:
            lines.append("")
        lines[-1] += atom if lines[-1] else atom.lstrip()
    return [line.rstrip() for line in lines]


def _atoms(text: str, limit: float) -> list[str]:
    """The smallest pieces a line is made of: words with the space before them, single wide characters."""
    atoms = [""]
    for part in graphemes(text):
        ends_here = part.isspace() or is_wide(part[0]) or (atoms[-1] and is_wide(atoms[-1][-1]))
        if ends_here or ems(atoms[-1] + part) > limit:
            atoms.append("")
        atoms[-1] += part
    return [atom for atom in atoms if atom]
