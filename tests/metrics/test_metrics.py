"""Scores: those of sacrebleu as they are, and F1 from its definition."""

import random

import pytest
from sacrebleu import corpus_bleu, corpus_chrf

from regard.metrics.classify import accuracy, macro_f1
from regard.metrics.text import BleuTokenizer, bleu, chrf

HYPOTHESES = ["the grey heron stands still .", "fog lies over the river", "我们 试试 看！", ""]
REFERENCES = ["the grey heron stood still .", "fog lies on the wide river", "我们来试试看！", "nothing"]


@pytest.mark.parametrize("tokenize", ["13a", "zh", "char", "intl", "none"])
def test_bleu_is_sacrebleus(tokenize: BleuTokenizer) -> None:
    """Text that is tokenised already (" .") is scored as it is, without a warning."""
    score, signature = bleu(HYPOTHESES, REFERENCES, tokenize)
    assert score == corpus_bleu(HYPOTHESES, [REFERENCES], tokenize=tokenize, force=True).score
    assert 0 < score < 100
    assert f"tok:{tokenize}" in signature
    assert "nrefs:1" in signature


def test_tokenised_text_scored_as_it_is() -> None:
    """tokenize=none splits at spaces only: "still." and "still ." differ, with 13a they do not."""
    glued, apart = ["the grey heron stands still."], ["the grey heron stands still ."]
    assert bleu(glued, apart, "13a")[0] == pytest.approx(100)
    assert bleu(glued, apart, "none")[0] < 80


def test_chrf_is_sacrebleus() -> None:
    score, signature = chrf(HYPOTHESES, REFERENCES)
    assert score == corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert "nc:6" in signature


def test_macro_f1_is_the_mean_of_each_labels() -> None:
    rng = random.Random(3)
    predicted, gold = (rng.choices("abcd", weights, k=397) for weights in ([5, 3, 1, 1], [4, 3, 2, 1]))
    scores = []
    for label in "abcd":
        hits = sum(p == g == label for p, g in zip(predicted, gold, strict=True))
        precision, recall = hits / predicted.count(label), hits / gold.count(label)
        scores.append(2 * precision * recall / (precision + recall))
    assert macro_f1(predicted, gold) == pytest.approx(sum(scores) / 4)
    assert accuracy(predicted, gold) == sum(p == g for p, g in zip(predicted, gold, strict=True)) / 397


def test_a_label_nobody_found_counts_as_zero() -> None:
    assert macro_f1(["a", "a"], ["a", "b"]) == pytest.approx((2 / 3 + 0) / 2)
    assert macro_f1(["a"], ["a"]) == 1
