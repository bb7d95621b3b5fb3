"""Ids of many texts by way of their words: a word is cut into pieces once, and then remembered.

The words of a text are known from other texts, nearly all of them: to look them up takes a tenth of the time
of cutting the text anew. It is right for tokenizers that cut at every space, whatever stands on its sides.
"""

from collections.abc import Sequence
from itertools import chain
from threading import Lock

import tokenizers as hf

MOST_WORDS = 2**17
LONGEST = 64
"""Characters of a word worth remembering; a Chinese sentence may be one word."""
BEFORE = "a "
"""What is put before a word to see it as one that does not begin its text."""


class Words:
    def __init__(self, inner: hf.Tokenizer) -> None:
        self._inner = inner
        self._lock = Lock()
        self._first: dict[str, list[int]] = {}
        self._later: dict[str, list[int]] = {}
        """Apart, as the first word of a text may have no space before it."""

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        cut = [text.strip().split(" ") for text in texts]
        with self._lock:
            passing = self._learn(self._first, {words[0] for words in cut})
            passing_later = self._learn(
                self._later, set(chain.from_iterable(words[1:] for words in cut)), BEFORE
            )
            later = self._later.__getitem__
            found = [
                [*self._first[first], *chain.from_iterable(map(later, others))] for first, *others in cut
            ]
            _forget(self._first, passing)
            _forget(self._later, passing_later)
        return found

    def _learn(self, known: dict[str, list[int]], words: set[str], before: str = "") -> list[str]:
        """Those that shall be forgotten again."""
        unseen = [word for word in words if word not in known]
        if unseen:
            given = [before, *(before + word for word in unseen)]
            nothing, *found = self._inner.encode_batch_fast(given, add_special_tokens=False)
            known |= zip(unseen, (each.ids[len(nothing) :] for each in found), strict=True)
        return [word for word in unseen if len(word) > LONGEST]


def _forget(known: dict[str, list[int]], passing: Sequence[str]) -> None:
    """Keeps the memory bounded, whatever is read."""
    for word in passing:
        del known[word]
    if len(known) > MOST_WORDS:
        known.clear()
