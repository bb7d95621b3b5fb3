"""ROUGE-1, -2 and -L (Lin 2004): how much of a summary stands in its reference, and the other way round.

F1 of each text, lower-cased and not stemmed, averaged over the texts: what `rouge-score` gives for English.
What differs: letters of every script count, and Chinese and Japanese are cut into characters.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from regard.metrics.resample import Floats, Scores
from regard.text.unicode import MARK, outline

ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
WORD = re.compile(f"[{ALONE}]{MARK}*|(?:[^\\W_{ALONE}]{MARK}*)+")
"""In the outline of a text."""
NAMES = ("rouge1", "rouge2", "rougeL")
SIGNATURE = "F1, mean of texts, lower case, no stemming, ideographs as words"

Rouge = tuple[float, float, float]
"""ROUGE-1, -2 and -L of a text."""


def words(text: str) -> list[str]:
    text = text.lower()
    return [text[found.start() : found.end()] for found in WORD.finditer(outline(text))]


def lead(text: str, n: int) -> str:
    """As far as its n-th word."""
    ends = [found.end() for found, _ in zip(WORD.finditer(outline(text)), range(n), strict=False)]
    return text[: ends[-1]] if ends else ""


def rouge(said: str, right: str) -> Rouge:
    """Of one text, 0 to 100."""
    pair = words(said), words(right)
    return 100 * _shared(*pair, 1), 100 * _shared(*pair, 2), 100 * _in_order(*pair)


def mean(scores: Sequence[Rouge], weights_RN: Floats) -> Scores:
    """For each row of weights, which says how often each text counts."""
    means_R3 = weights_RN @ np.array(scores) / weights_RN.sum(axis=1, keepdims=True)
    return dict(zip(NAMES, means_R3.T, strict=True))


def _shared(said: list[str], right: list[str], n: int) -> float:
    """F1 of the sequences of n words."""
    found, wanted = (Counter(zip(*(text[i:] for i in range(n)), strict=False)) for text in (said, right))
    return _f1((found & wanted).total(), found.total(), wanted.total())


def _in_order(said: list[str], right: list[str]) -> float:
    """F1 of the words that both have in the same order, whatever stands between."""
    return _f1(_common(said, right), len(said), len(right))


def _common(one: list[str], other: list[str]) -> int:
    """The length of the longest common subsequence, row by row of its table."""
    best = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for at, against in enumerate(other, 1):
            before, best[at] = best[at], before + 1 if word == against else max(best[at], best[at - 1])
    return best[-1]


def _f1(hits: int, told: int, there: int) -> float:
    return 2 * hits / (told + there) if hits else 0.0
