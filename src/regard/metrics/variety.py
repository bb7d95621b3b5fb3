"""distinct-n (Li et al. 2016): the share of different n-grams among all n-grams of all answers.

A model that gives everybody the same answer has few. The share falls with the number of answers, so only
equally many can be compared.
"""

from collections.abc import Sequence

from regard.metrics.rouge import words


def distinct(texts: Sequence[str]) -> dict[str, float]:
    """distinct-1 and distinct-2, in percent."""
    cut = [words(text) for text in texts]
    return {f"distinct_{n}": _share(cut, n) for n in (1, 2)}


def _share(texts: Sequence[Sequence[str]], n: int) -> float:
    ngrams = [part for text in texts for part in zip(*(text[i:] for i in range(n)), strict=False)]
    return 100 * len(set(ngrams)) / max(1, len(ngrams))
