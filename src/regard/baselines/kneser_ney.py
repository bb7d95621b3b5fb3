"""An n-gram language model with interpolated modified Kneser-Ney smoothing (Chen & Goodman 1999).

p(w | h) = (a(h w) − D) / a(h •) + γ(h) · p(w | h without its first token)

`a` counts the longest n-grams; for a shorter one it is the number of different tokens before it. D depends on
whether a is 1, 2 or more, γ(h) passes on the sum of all D of a context, and below the shortest context all
tokens of the vocabulary are equal. The training text is a ring, so that every n-gram has a token before it.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

ORDER = 5
"""Tokens of the longest n-grams."""
UNSEEN = -1

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Order:
    """The n-grams of one length, numbered from 0; contexts are numbered as n-grams one token shorter."""

    keys: Ints
    """Number of the context × vocabulary + last token, in ascending order."""
    discounted: Floats
    """a − D of each n-gram."""
    totals: Floats
    """a(h •) of each context."""
    handed_on: Floats
    """γ of each context."""

    @classmethod
    def of(cls, keys: Ints, a: Ints, vocab: int) -> Self:
        contexts, discounts = keys // vocab, discount(a)[np.minimum(a, 3)]
        totals = np.bincount(contexts, a)
        handed_on = np.bincount(contexts, discounts) / totals
        return cls(keys, a - discounts, totals.astype(np.float64), handed_on)

    def find(self, keys: Ints) -> Ints:
        """The numbers of n-grams; UNSEEN for those that do not occur."""
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, UNSEEN)


class KneserNey:
    def __init__(self, text: Ints, vocab: int, order: int = ORDER) -> None:
        text = np.asarray(text, np.int64)
        self.vocab = vocab
        self.orders: list[Order] = []
        keys, counts = np.zeros(1, np.int64), np.zeros(0, np.int64)
        numbers = np.zeros(len(text), np.int64)
        """The number of the n-gram that begins at each place."""
        for n in range(order):
            shorter = keys
            keys, first, longer, counts = np.unique(
                numbers * vocab + np.roll(text, -n),
                return_index=True,
                return_inverse=True,
                return_counts=True,
            )
            if n:
                without_first = numbers[(first + 1) % len(text)]
                self.orders.append(
                    Order.of(shorter, np.bincount(without_first, minlength=len(shorter)), vocab)
                )
            numbers = longer
        self.orders.append(Order.of(keys, counts, vocab))

    def log_probs(self, tokens: Ints) -> Floats:
        """The log-probability of each token but the first, which is only context."""
        tokens = np.asarray(tokens, np.int64)
        p = np.full(len(tokens), 1 / self.vocab)
        contexts = np.zeros(len(tokens), np.int64)
        for n, order in enumerate(self.orders[: len(tokens)]):
            contexts = contexts[: len(tokens) - n]
            seen = contexts != UNSEEN
            numbers = np.where(seen, order.find(contexts * self.vocab + tokens[n:]), UNSEEN)
            share = np.where(numbers == UNSEEN, 0.0, order.discounted[numbers]) / order.totals[contexts]
            p[n:] = np.where(seen, share + order.handed_on[contexts] * p[n:], p[n:])
            contexts = numbers
        logs: Floats = np.log(p[1:])
        return logs


def discount(a: Ints) -> Floats:
    """The discount D for an `a` of 0, 1, 2, and 3 or more, from the numbers of n-grams with an a of 1 to 4.

    If these are too few for the formula, half of a.
    """
    n = np.bincount(a, minlength=5).tolist()
    y = n[1] / max(1, n[1] + 2 * n[2])
    discounts = [k - (k + 1) * y * n[k + 1] / n[k] if n[k] else 0.0 for k in (1, 2, 3)]
    return np.array([0.0, *(d if 0 < d < k else k / 2 for k, d in enumerate(discounts, 1))])
