"""Intervals and paired tests: against loops that build every draw, enumeration, and sacrebleu's own tests."""

import math
import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from regard.metrics import resample
from regard.metrics.resample import DRAWS, Weighable, differences, intervals, unweighted
from regard.tasks.classify import LabelTally
from regard.tasks.language_model import BlockTally
from regard.tasks.tag import TagTally
from regard.tasks.translate import TextTally

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove")
TAGS = ("O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def noisy(rng: random.Random, right: Sequence[str], choices: Sequence[str], noise: float) -> list[str]:
    return [one if rng.random() > noise else rng.choice(choices) for one in right]


def labels(n: int, noise: float, seed: int = 1) -> LabelTally:
    gold = random.Random("gold").choices("abcde", [9, 5, 3, 1, 0.2], k=n)
    return LabelTally(noisy(random.Random(seed), gold, "abcde", noise), gold)


def sentences(n: int, choices: Sequence[str], longest: int) -> list[list[str]]:
    rng = random.Random("gold")
    return [rng.choices(choices, k=rng.randint(1, longest)) for _ in range(n)]


def tagged(n: int, noise: float, seed: int = 1, *, marks_spans: bool = True) -> TagTally:
    gold, rng = sentences(n, TAGS, 7), random.Random(seed)
    predicted = [tuple(noisy(rng, right, TAGS, noise)) for right in gold]
    return TagTally(marks_spans, predicted, [tuple(right) for right in gold])


def texts(n: int, noise: float, seed: int = 1) -> TextTally:
    gold, rng = sentences(n, WORDS, 9), random.Random(seed)
    return TextTally.of(
        "13a",
        [" ".join(noisy(rng, right, WORDS, noise)) for right in gold],
        [" ".join(right) for right in gold],
    )


def blocks(n: int, noise: float, seed: int = 1) -> BlockTally:
    sizes, rng = random.Random("gold"), random.Random(seed)
    tokens = [sizes.randint(1, 13) for _ in range(n)]
    nats = [noise * count * rng.uniform(1, 4) for count in tokens]
    return BlockTally("v", nats, tokens, [3 * count for count in tokens], [0] * n)


def untagged(n: int, noise: float, seed: int = 1) -> TagTally:
    return tagged(n, noise, seed, marks_spans=False)


Make = Callable[..., Any]
EVERY = pytest.mark.parametrize("make", [labels, tagged, untagged, texts, blocks])


@EVERY
@pytest.mark.parametrize("n", [1, 2, 5, 41])
def test_weights_are_repetitions(make: Make, n: int) -> None:
    """A few examples only: draws without any hit, without a four-gram, without a span."""
    tally = make(n, 0.5)
    assert isinstance(tally, Weighable)
    rng = random.Random(n)
    draws = [rng.choices(range(n), k=n) for _ in range(60)]
    weights_RN = np.array([np.bincount(draw, minlength=n) for draw in draws], float)
    found = tally.weighed(weights_RN)
    for row, draw in enumerate(draws):
        built = tally.taken(draw).metrics()
        assert {name: scores[row] for name, scores in found.items()} == pytest.approx(built, abs=1e-9)


@EVERY
def test_an_interval_holds_what_a_loop_finds(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resample, "DRAWS", 200)
    tally, rng = make(37, 0.4), np.random.default_rng(resample.SEED)
    scored = [tally.taken(rng.integers(37, size=37).tolist()).metrics() for _ in range(200)]
    for name, (low, high) in intervals(tally).items():
        in_order = sorted(scores[name] for scores in scored)
        assert (low, high) == pytest.approx((in_order[5], in_order[194]))
        assert low < tally.metrics()[name] < high


def test_parts_of_draws_are_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = labels(43, 0.2), labels(43, 0.4, seed=2)
    whole = intervals(one), differences(one, other)
    monkeypatch.setattr(resample, "AT_ONCE", 1000)
    assert (intervals(one), differences(one, other)) == whole


def test_an_interval_is_as_wide_as_theory_says() -> None:
    """Of a share of n: 1.96 standard errors to both sides."""
    tally = labels(900, 0.3)
    share = tally.metrics()["accuracy"] / 100
    error = 196 * math.sqrt(share * (1 - share) / 900)
    low, high = intervals(tally)["accuracy"]
    assert high - low == pytest.approx(2 * error, rel=0.08)


@EVERY
def test_a_model_does_not_differ_from_itself(make: Make) -> None:
    tally = make(23, 0.4)
    for found in differences(tally, tally).values():
        assert (found.value, found.interval, found.p) == (0, (0, 0), 1)


def test_what_is_infinite_has_no_interval() -> None:
    sizes: Any = ([3, 3, 3], [4, 4, 4], [0, 0, 0])
    whole = BlockTally("v", [3.0, 1.0, 2.0], *sizes)
    for cost in (math.inf, math.nan):
        broken = BlockTally("v", [cost, 1.0, 2.0], *sizes)
        assert set(intervals(broken)) == set(differences(broken, whole)) == {"probability"}
    assert set(intervals(whole)) == set(differences(whole, whole)) == set(whole.metrics())


@EVERY
def test_what_is_plainly_better_is_no_chance(make: Make) -> None:
    good, bad = make(150, 0.1), make(150, 0.8, seed=2)
    there, back = differences(good, bad), differences(bad, good)
    assert set(there) == set(unweighted(good))
    for name, found in there.items():
        low, high = found.interval
        assert found.p == 1 / (DRAWS + 1)
        assert low < found.value < high
        assert low * high > 0
        assert found.value == pytest.approx(good.metrics()[name] - bad.metrics()[name])
        assert back[name].value == pytest.approx(-found.value)
        assert back[name].interval == pytest.approx((-high, -low))


def test_p_is_the_share_of_all_exchanges() -> None:
    """Of eight answers every exchange can be tried."""
    gold = list("aabbabab")
    one, other = LabelTally(list("aabbabaa"), gold), LabelTally(list("abbabbab"), gold)
    real = {name: abs(found.value) for name, found in differences(one, other).items()}
    trials = []
    for swap in product([False, True], repeat=8):
        pairs = list(zip(one.predicted, other.predicted, swap, strict=True))
        first, second = [b if s else a for a, b, s in pairs], [a if s else b for a, b, s in pairs]
        scores = LabelTally(first, gold).metrics(), LabelTally(second, gold).metrics()
        trials.append({name: abs(scores[0][name] - scores[1][name]) for name in real})
    for name, found in differences(one, other).items():
        exact = sum(trial[name] >= real[name] - 1e-9 for trial in trials) / len(trials)
        assert 0.05 < exact < 1
        assert found.p == pytest.approx(exact, abs=0.04)


@pytest.mark.parametrize(("noise", "seed"), [(0.34, 3), (0.38, 4)])
def test_bleu_as_sacrebleu_tests_it(noise: float, seed: int) -> None:
    """Other draws, the same distribution: interval and p agree as far as 2,000 draws can tell."""
    one, other = texts(300, 0.3), texts(300, noise, seed)
    found, interval = differences(one, other)["bleu"], intervals(one)["bleu"]
    systems = [("one", one.hypotheses), ("other", other.hypotheses)]

    def sacrebleus(test: str) -> list[Any]:
        metrics = {"BLEU": BLEU(tokenize="13a", force=True)}
        scores = PairedTest(systems, metrics, [one.references], test_type=test, n_samples=DRAWS)()[1]
        return list(scores["BLEU"])

    by_exchange, by_draws = sacrebleus("ar"), sacrebleus("bs")
    assert found.value == pytest.approx(by_exchange[0].score - by_exchange[1].score)
    assert found.p == pytest.approx(by_exchange[1].p_value, abs=0.05)
    assert (interval[1] - interval[0]) / 2 == pytest.approx(by_draws[0].ci, rel=0.1)
    assert sum(interval) / 2 == pytest.approx(by_draws[0].mean, abs=0.25)
