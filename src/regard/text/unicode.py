"""Where words begin and end where vowels and accents are marks, which `\\w` takes for no letters."""

import unicodedata

MARK = "\u0300"
"""What stands for every mark in the outline of a text: it belongs to the letter or sign before it."""
JOINERS = "\u00ad\u200c\u200d\u2060"
"""Invisible, but inside a word: the soft hyphen, and what keeps letters apart or together."""


class _Outline(dict[int, str]):
    """What stands for marks and for what is invisible; there are a few thousand, noted when they are met."""

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
    """As long as the text: a MARK for every mark, a space for what can be seen by nobody."""
    return text if text.isascii() and text.isprintable() else text.translate(_OUTLINE)


def is_blank(text: str) -> bool:
    """Whether nothing of it can be seen: spaces, joiners and the like, marks without a letter."""
    return all(character.isspace() or character in (MARK, *JOINERS) for character in outline(text))
