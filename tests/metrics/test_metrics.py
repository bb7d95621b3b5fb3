"""Scores: those of sacrebleu as they are, and F1 from its definition."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from sacrebleu import corpus_bleu, corpus_chrf

from regard.metrics.classify import multi_label, single_label
from regard.metrics.text import BleuTokenizer, CorpusMetric, bleu, chrf, counted, scored, signature

HYPOTHESES = ["the grey heron stands still .", "fog lies over the river", "我们 试试 看！", ""]
REFERENCES = ["the grey heron stood still .", "fog lies on the wide river", "我们来试试看！", "nothing"]


def scores(metric: CorpusMetric, hypotheses: list[str], references: list[str]) -> float:
    sums_1S = np.array(counted(metric, hypotheses, references), np.float64).sum(0, keepdims=True)
    (score,) = scored(metric, sums_1S)
    return float(score)


@pytest.mark.parametrize("tokenize", ["13a", "zh", "char", "intl", "none"])
def test_bleu_is_sacrebleus(tokenize: BleuTokenizer) -> None:
    """Text that is tokenised already (" .") is scored as it is, without a warning."""
    score = scores(bleu(tokenize), HYPOTHESES, REFERENCES)
    assert score == corpus_bleu(HYPOTHESES, [REFERENCES], tokenize=tokenize, force=True).score
    assert 0 < score < 100
    assert f"nrefs:1|case:mixed|eff:no|tok:{tokenize}|" in signature(bleu(tokenize))


def test_tokenised_text_scored_as_it_is() -> None:
    """tokenize=none splits at spaces only: "still." and "still ." differ, with 13a they do not."""
    glued, apart = ["the grey heron stands still."], ["the grey heron stands still ."]
    assert scores(bleu("13a"), glued, apart) == pytest.approx(100)
    assert scores(bleu("none"), glued, apart) < 80


def test_chrf_is_sacrebleus() -> None:
    assert scores(chrf(), HYPOTHESES, REFERENCES) == corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert "nrefs:1" in signature(chrf())
    assert "nc:6" in signature(chrf())


def once(n: int) -> NDArray[np.float64]:
    return np.ones((1, n))


def macro_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    return float(single_label(predicted, gold)(once(len(gold)))["macro_f1"][0]) / 100


def test_macro_f1_is_the_mean_of_each_labels() -> None:
    rng = random.Random(3)
    predicted, gold = (rng.choices("abcd", weights, k=397) for weights in ([5, 3, 1, 1], [4, 3, 2, 1]))
    scores = []
    for label in "abcd":
        hits = sum(p == g == label for p, g in zip(predicted, gold, strict=True))
        precision, recall = hits / predicted.count(label), hits / gold.count(label)
        scores.append(2 * precision * recall / (precision + recall))
    assert macro_f1(predicted, gold) == pytest.approx(sum(scores) / 4)
    (accuracy,) = single_label(predicted, gold)(once(397))["accuracy"]
    assert accuracy == pytest.approx(100 * sum(p == g for p, g in zip(predicted, gold, strict=True)) / 397)


def test_a_label_nobody_found_counts_as_zero() -> None:
    assert macro_f1(["a", "a"], ["a", "b"]) == pytest.approx((2 / 3 + 0) / 2)
    assert macro_f1(["a"], ["a"]) == 1


def test_several_labels_cell_by_cell() -> None:
    """As a table of yes and no, text by label: the definitions that scikit-learn has."""
    rng = random.Random(5)
    names, n = "abcde", 211
    gold, predicted = ([{c for c in names if rng.random() < 0.3} for _ in range(n)] for _ in range(2))
    gold = [
        {*wanted} if rng.random() < 0.4 else {*said} for said, wanted in zip(predicted, gold, strict=True)
    ]
    pairs = list(zip(predicted, gold, strict=True))

    def f1(labels: str) -> float:
        hits = sum((c in said) and (c in wanted) for said, wanted in pairs for c in labels)
        told = sum(c in said for said, _ in pairs for c in labels)
        there = sum(c in wanted for _, wanted in pairs for c in labels)
        precision, recall = hits / told, hits / there
        return 100 * 2 * precision * recall / (precision + recall)

    found = multi_label([*map(sorted, predicted)], [*map(sorted, gold)])(once(n))
    assert found["micro_f1"][0] == pytest.approx(f1(names))
    assert found["macro_f1"][0] == pytest.approx(sum(map(f1, names)) / 5)
    assert found["accuracy"][0] == pytest.approx(100 * sum(said == wanted for said, wanted in pairs) / n)


def test_no_labels_at_all_are_right_but_find_nothing() -> None:
    found = multi_label([(), ()], [(), ()])(once(2))
    assert {name: score[0] for name, score in found.items()} == {
        "micro_f1": 0,
        "macro_f1": 0,
        "accuracy": 100,
    }
