"""The trust sentence: right about planted maps, and not to be impressed by many tries."""

import re

import numpy as np
import pytest

from regard.explain.trust import rate_maps


def planted(seed: int, n_pieces: int = 11, n_tokens: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Drops in which one piece matters for each token, and the map that looks at exactly that piece."""
    rng = np.random.default_rng(seed)
    matters_T = rng.integers(n_pieces, size=n_tokens)
    drop_KT = rng.normal(scale=0.05, size=(n_pieces, n_tokens))
    drop_KT[matters_T, np.arange(n_tokens)] += 3.0
    weights_TK = np.full((n_tokens, n_pieces + 1), 0.01)  # one column more: the end of the sentence
    weights_TK[np.arange(n_tokens), matters_T] = 0.9
    return weights_TK, drop_KT


def test_a_map_that_points_at_what_matters_scores_one():
    weights_TK, drop_KT = planted(seed=1)
    best, trust = rate_maps([weights_TK], drop_KT)
    assert best == 0
    assert trust.score == pytest.approx(1.0)
    assert "largely point at what matters" in trust.sentence


def test_the_sentence_gives_the_three_costs():
    weights_TK, drop_KT = planted(seed=2)
    _, trust = rate_maps([weights_TK], drop_KT)
    most = drop_KT.max(0).mean()
    assert f"changes the log-probability of a word of the answer by {most:.2f} on" in trust.sentence
    assert (
        f"a random token by {np.abs(drop_KT).mean():.2f}, the one that matters most by {most:.2f}"
        in trust.sentence
    )
    numbers = re.findall(r"\d+(?:\.\d+)?", trust.sentence)
    assert set(numbers) <= set(re.findall(r"\d+(?:\.\d+)?", trust.in_chinese)), "the same facts in Chinese"


def test_the_best_of_the_maps_is_named():
    weights_TK, drop_KT = planted(seed=3)
    blind = np.roll(weights_TK, 1, axis=1)
    best, trust = rate_maps([blind, weights_TK, blind], drop_KT)
    assert best == 1
    assert "is the best of 3" in trust.sentence
    assert "3 张图中最好的一张" in trust.in_chinese


def test_random_maps_are_seldom_believed_however_many_there_are():
    believed = 0
    for seed in range(60):
        _, drop_KT = planted(seed)
        noise = np.random.default_rng(1000 + seed).random((8, 7, 12))
        _, trust = rate_maps(list(noise), drop_KT)
        believed += "no better than shuffled" not in trust.sentence
    assert believed <= 10  # 5 % of 60 is 3; ten or fewer with probability > 0.999


def test_drops_that_are_all_alike_prove_nothing():
    weights_TK, drop_KT = planted(seed=5)
    _, trust = rate_maps([weights_TK], np.ones_like(drop_KT))
    assert trust.score == 0.0
    assert "no better than shuffled" in trust.sentence


def test_a_piece_that_speaks_against_the_answer_matters_too():
    weights_TK, drop_KT = planted(seed=6)
    _, trust = rate_maps([weights_TK], -drop_KT)
    assert trust.score == pytest.approx(1.0)


def test_a_short_input_cannot_tell():
    """Of two pieces shuffled weights find the better one every other time."""
    change_KT = np.array([[2.0], [0.1]])
    _, trust = rate_maps([np.array([[0.9, 0.1]])], change_KT)
    assert trust.score is None
    assert "too few tokens here" in trust.sentence
    assert "changes the log-probability of the answer by 2.00" in trust.sentence
    assert "词元太少" in trust.in_chinese


def test_pieces_that_matter_alike_are_no_choice() -> None:
    """What is left of a difference is rounding: neither 100 % nor -100 % of anything."""
    change_KT = 0.64 + np.array([[1e-7], [-1e-7], [0], [2e-7]])
    _, trust = rate_maps([np.eye(4)[:1]], change_KT)
    assert "go 0% of the way from random to best (shuffled weights stay below 0%" in trust.sentence
