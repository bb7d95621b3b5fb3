"""Word borders in scripts whose vowels and accents are marks, which `\\w` does not count as letters."""

import unicodedata

MARK = "\u0300"
"""Stands for every mark in the outline of a text; a mark belongs to the character before it."""
JOINERS = "\u00ad\u200c\u200d\u2060"
"""Invisible characters inside words: the soft hyphen, and joiners that keep letters apart or together."""


class _Outline(dict[int, str]):
    """Table for str.translate: marks and invisible characters, added as they are met (a few thousand)."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = unicodedata.category(character)
        if kind.startswith("M"):
            return self.setdefault(code, MARK)
        if kind in ("Cc", "Cf") and character not in JOINERS:
            return self.setdefault(code, " ")
        return character


_OUTLINE = _Outline()


def outline(text: str) -> str:
    """A text of the same length with MARK for every mark and a space for every invisible character."""
    return text if text.isascii() and text.isprintable() else text.translate(_OUTLINE)


def is_blank(text: str) -> bool:
    """True if a text has no visible character: only spaces, joiners, marks without a letter."""
    return all(character.isspace() or character in (MARK, *JOINERS) for character in outline(text))
