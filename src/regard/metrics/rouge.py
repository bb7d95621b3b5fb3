"""ROUGE-1, -2 and -L (Lin 2004): the overlap of a summary and its reference.

F1 of each text, lower-cased and not stemmed, averaged over the texts: what `rouge-score` gives for English.
It differs in that letters of every script count, and Chinese and Japanese are cut into characters.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from regard.metrics.resample import Floats, Scores
from regard.text.unicode import MARK, outline

ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
WORD = re.compile(f"[{ALONE}]{MARK}*|(?:[^\\W_{ALONE}]{MARK}*)+")
"""A word in the outline of a text."""
NAMES = ("rouge1", "rouge2", "rougeL")
SIGNATURE = "F1, mean of texts, lower case, no stemming, ideographs as words"

Rouge = tuple[float, float, float]
"""ROUGE-1, -2 and -L of a text."""


def words(text: str) -> list[str]:
    text = text.lower()
    return [text[match.start() : match.end()] for match in WORD.finditer(outline(text))]


def lead(text: str, n: int) -> str:
    """The beginning of a text, to its n-th word."""
    ends = [match.end() for match, _ in zip(WORD.finditer(outline(text)), range(n), strict=False)]
    return text[: ends[-1]] if ends else ""


def rouge(summary: str, reference: str) -> Rouge:
    """The scores of one text, 0 to 100."""
    pair = words(summary), words(reference)
    return 100 * _shared(*pair, 1), 100 * _shared(*pair, 2), 100 * _in_order(*pair)


def mean(scores: Sequence[Rouge], weights_RN: Floats) -> Scores:
    """Mean scores for each row of weights, which says how often each text counts."""
    means_R3 = weights_RN @ np.array(scores) / weights_RN.sum(axis=1, keepdims=True)
    return dict(zip(NAMES, means_R3.T, strict=True))


def _shared(summary: list[str], reference: list[str], n: int) -> float:
    """F1 of the sequences of n words."""
    ours, theirs = (
        Counter(zip(*(text[i:] for i in range(n)), strict=False)) for text in (summary, reference)
    )
    return _f1((ours & theirs).total(), ours.total(), theirs.total())


def _in_order(summary: list[str], reference: list[str]) -> float:
    """F1 of the longest common subsequence of words."""
    return _f1(longest_common(summary, reference), len(summary), len(reference))


def longest_common(first: list[str], second: list[str]) -> int:
    """The length of the longest common subsequence, row by row of its table."""
    best = [0] * (len(second) + 1)
    for word in first:
        before = 0
        for at, against in enumerate(second, 1):
            before, best[at] = best[at], before + 1 if word == against else max(best[at], best[at - 1])
    return best[-1]


def _f1(hits: int, n_predicted: int, n_gold: int) -> float:
    return 2 * hits / (n_predicted + n_gold) if hits else 0.0
