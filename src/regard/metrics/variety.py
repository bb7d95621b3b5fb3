"""distinct-n (Li et al. 2016): how many of the sequences of n words in all answers together are different.

A model that says the same to everybody has few. The share falls with the number of answers, so only equally
many can be compared.
"""

from collections.abc import Sequence

from regard.metrics.rouge import words


def distinct(texts: Sequence[str]) -> dict[str, float]:
    """For n = 1 and 2, in percent."""
    cut = [words(text) for text in texts]
    return {f"distinct_{n}": _share(cut, n) for n in (1, 2)}


def _share(texts: Sequence[Sequence[str]], n: int) -> float:
    found = [part for text in texts for part in zip(*(text[i:] for i in range(n)), strict=False)]
    return 100 * len(set(found)) / max(1, len(found))
