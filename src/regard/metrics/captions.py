"""Scores of captions against several references each: BLEU-1 … 4, ROUGE-L and CIDEr-D.

They are computed as the field does (Chen et al. 2015, `pycocoevalcap`): BLEU over the whole corpus with the
nearest reference's length, ROUGE-L of each caption with β = 1.2, CIDEr-D (Vedantam et al. 2015) with document
frequencies from the references that are scored, σ = 6, ×10. All are then given in per cent. Words are those
of ROUGE here: lower case, letters and digits, ideographs one by one.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.metrics.resample import Floats
from regard.metrics.rouge import longest_common, words

ORDERS = (1, 2, 3, 4)
SIGMA = 6.0
BETA = 1.2
TINY, SMALL = 1e-15, 1e-9
"""What keeps a corpus without a match from dividing by zero, as the field does."""
SIGNATURE = "as pycocoevalcap, per cent; words: lower case, letters and digits, ideographs one by one"

Words = Sequence[str]
Ngrams = Counter[tuple[str, ...]]


def ngrams(text: Words) -> Ngrams:
    return Counter(tuple(text[at : at + n]) for n in ORDERS for at in range(len(text) - n + 1))


@dataclass(frozen=True)
class Cut:
    """Captions and their references, cut into words."""

    captions: list[list[str]]
    references: list[list[list[str]]]

    @classmethod
    def of(cls, captions: Sequence[str], references: Sequence[Sequence[str]]) -> "Cut":
        return cls([*map(words, captions)], [[*map(words, several)] for several in references])


def bleu_counts(cut: Cut) -> Floats:
    """counts_NC of every caption: hits and n-grams by order, its length, and its nearest reference's."""
    rows = []
    for caption, references in zip(cut.captions, cut.references, strict=True):
        allowed: Ngrams = Counter()
        for reference in references:
            allowed |= ngrams(reference)
        hits = ngrams(caption) & allowed
        by_order = Counter[int]()
        for ngram, n in hits.items():
            by_order[len(ngram)] += n
        nearest = min((abs(len(one) - len(caption)), len(one)) for one in references)[1]
        totals = [max(0, len(caption) - n + 1) for n in ORDERS]
        rows.append([*(by_order[n] for n in ORDERS), *totals, len(caption), nearest])
    return np.array(rows, np.float64).reshape(-1, 2 * len(ORDERS) + 2)


def bleu(sums_RC: Floats) -> dict[str, Floats]:
    """BLEU-1 … 4 of each row of summed counts."""
    n = len(ORDERS)
    hits_RO, totals_RO = sums_RC[:, :n], sums_RC[:, n : 2 * n]
    logs_RO = np.log((hits_RO + TINY) / (totals_RO + SMALL)).cumsum(1) / np.array(ORDERS)
    ratio_R = (sums_RC[:, -2] + TINY) / (sums_RC[:, -1] + SMALL)
    brevity_R = np.where(ratio_R < 1, 1 - 1 / ratio_R, 0.0)
    scores_RO = 100 * np.exp(logs_RO + brevity_R[:, None])
    return {f"bleu{order}": scores_RO[:, order - 1] for order in ORDERS}


def rouge_l(cut: Cut) -> Floats:
    """rouge_N: F of the longest common subsequence, of the best precision and the best recall."""
    scores = []
    for caption, references in zip(cut.captions, cut.references, strict=True):
        common = [longest_common(caption, one) for one in references]
        precision = max(common) / len(caption) if caption else 0.0
        recall = max((n / len(one) for n, one in zip(common, references, strict=True) if one), default=0.0)
        above = (1 + BETA**2) * precision * recall
        scores.append(above / (recall + BETA**2 * precision) if above else 0.0)
    return 100 * np.array(scores)


def cider_d(cut: Cut) -> Floats:
    """cider_N: tf-idf weighted agreement of n-grams with the references, clipped, and less if a length is
    off.
    """
    counted = [[ngrams(one) for one in references] for references in cut.references]
    frequency = Counter(ngram for several in counted for ngram in set().union(*several))
    n_log = math.log(max(1, len(counted)))
    scores = []
    for caption, references in zip(cut.captions, counted, strict=True):
        ours = _Weighted.of(ngrams(caption), frequency, n_log)
        theirs = [_Weighted.of(one, frequency, n_log) for one in references]
        scores.append(sum(ours.agreement(one) for one in theirs) / max(1, len(theirs)))
    return 1000 * np.array(scores)


@dataclass(frozen=True)
class _Weighted:
    """The n-grams of a text weighted by tf-idf, with their norm for each order."""

    weights: dict[tuple[str, ...], float]
    norms: dict[int, float]
    length: int
    """Bigrams, as the field measures it."""

    @classmethod
    def of(cls, counts: Ngrams, frequency: Counter[tuple[str, ...]], n_log: float) -> "_Weighted":
        weights = {ngram: n * (n_log - math.log(max(1.0, frequency[ngram]))) for ngram, n in counts.items()}
        squares = dict.fromkeys(ORDERS, 0.0)
        for ngram, weight in weights.items():
            squares[len(ngram)] += weight**2
        length = sum(n for ngram, n in counts.items() if len(ngram) == 2)
        return cls(weights, {n: math.sqrt(square) for n, square in squares.items()}, length)

    def agreement(self, reference: "_Weighted") -> float:
        """The mean over orders, from 0 to 1."""
        products = dict.fromkeys(ORDERS, 0.0)
        for ngram, weight in self.weights.items():
            right = reference.weights.get(ngram, 0.0)
            products[len(ngram)] += min(weight, right) * right
        shares = [
            product / norm if (norm := self.norms[n] * reference.norms[n]) else product
            for n, product in products.items()
        ]
        apart = self.length - reference.length
        return math.exp(-(apart**2) / (2 * SIGMA**2)) * sum(shares) / len(ORDERS)
