"""Kneser-Ney against the formula of Chen & Goodman, counted out with dictionaries, n-gram by n-gram."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from regard.baselines.kneser_ney import KneserNey

Gram = tuple[int, ...]


class Formula:
    """The same model from its definition."""

    def __init__(self, text: Sequence[int], vocab: int, order: int) -> None:
        self.vocab, self.order = vocab, order
        ring = [*text] * (order // len(text) + 2)
        grams = {n: Counter(tuple(ring[i : i + n]) for i in range(len(text))) for n in range(1, order + 1)}
        self.a: dict[int, dict[Gram, int]] = {order: grams[order]}
        for n in range(1, order):
            before: dict[Gram, set[int]] = defaultdict(set)
            for gram in grams[n + 1]:
                before[gram[1:]].add(gram[0])
            self.a[n] = {gram: len(tokens) for gram, tokens in before.items()}

    def d(self, n: int, a: int) -> float:
        n1, n2, n3, n4 = (sum(each == k for each in self.a[n].values()) for k in (1, 2, 3, 4))
        y = n1 / (n1 + 2 * n2) if n1 else 0.0
        k = min(a, 3)
        above, of = ((n1, n2, n3, n4)[k], (n1, n2, n3, n4)[k - 1])
        d = k - (k + 1) * y * above / of if of else 0.0
        return d if 0 < d < k else k / 2

    def p(self, word: int, context: Gram) -> float:
        n = len(context) + 1
        follow = {gram[-1]: a for gram, a in self.a[n].items() if gram[:-1] == context}
        lower = self.p(word, context[1:]) if context else 1 / self.vocab
        if not follow:
            return lower
        total = sum(follow.values())
        gamma = sum(self.d(n, a) for a in follow.values()) / total
        own = (follow[word] - self.d(n, follow[word])) / total if word in follow else 0.0
        return own + gamma * lower

    def log_probs(self, tokens: Sequence[int]) -> list[float]:
        places = range(1, len(tokens))
        return [math.log(self.p(tokens[i], tuple(tokens[max(0, i - self.order + 1) : i]))) for i in places]


def text_of(n: int, vocab: int, seed: int) -> list[int]:
    """A few tokens are common, and some follow others more often."""
    rng, text = random.Random(seed), [0]
    for _ in range(n - 1):
        text.append(
            (text[-1] * 2 + 1) % vocab
            if rng.random() < 0.4
            else min(rng.randrange(vocab), rng.randrange(vocab))
        )
    return text


@pytest.mark.parametrize(
    ("n", "vocab", "order", "seed"), [(211, 7, 3, 1), (307, 13, 5, 2), (97, 3, 2, 3), (53, 29, 4, 4)]
)
def test_it_is_the_formula(n: int, vocab: int, order: int, seed: int) -> None:
    text, unseen = text_of(n, vocab - 1, seed), text_of(61, vocab, seed + 100)
    ours, theirs = KneserNey(np.array(text), vocab, order), Formula(text, vocab, order)
    for tokens in (unseen, text[:23], text[5:7], unseen[:2], unseen[:1]):
        np.testing.assert_allclose(ours.log_probs(np.array(tokens)), theirs.log_probs(tokens), rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 5])
def test_the_probabilities_of_all_tokens_add_up_to_one(order: int) -> None:
    vocab, text = 11, text_of(173, 9, 5)
    model = KneserNey(np.array(text), vocab, order)
    for context in ([], [1], [10], text[20:24], [10, 10, 1, 3]):
        p = [math.exp(model.log_probs(np.array([0, *context, word]))[-1]) for word in range(vocab)]
        assert sum(p) == pytest.approx(1, rel=1e-12)
        assert min(p) > 0


def test_any_text_can_be_learnt_from() -> None:
    """Too short for its n-grams; all alike; every token once."""
    for text in ([3], [3, 3, 3, 3], [*range(7)], [0, 1]):
        found = KneserNey(np.array(text), 9, 5).log_probs(np.array([*text, 8, *text]))
        assert np.isfinite(found).all()
        assert (found <= 0).all()


def test_long_vocabularies_do_not_overflow() -> None:
    rng: Any = np.random.default_rng(1)
    text = rng.choice(rng.integers(0, 200_000, 2000), 5000)
    text = np.concatenate([text, text])
    model = KneserNey(text, 200_001, 5)
    assert model.log_probs(text)[4:].mean() > model.log_probs(rng.permutation(text))[4:].mean() + 1
