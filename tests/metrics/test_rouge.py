"""ROUGE against its definition, spelt out slowly; distinct-n; BLEU with several references."""

import random
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu import corpus_bleu

from regard.metrics.rouge import NAMES, lead, mean, rouge, words
from regard.metrics.text import SentenceCounts, bleu, counted, counted_of_many, scored, signature
from regard.metrics.variety import distinct


def scores(said: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """The means, each text counted once."""
    found = mean(list(map(rouge, said, right)), np.ones((1, len(said))))
    return {name: float(score) for name, (score,) in found.items()}


def slow_lcs(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    @cache
    def longest(i: int, j: int) -> int:
        if i == len(one) or j == len(other):
            return 0
        if one[i] == other[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    return longest(0, 0)


def slow_hits(one: list[str], other: list[str], n: int) -> tuple[int, int, int]:
    """Grams of both, each of the other's crossed out once it is found."""
    said = [one[i : i + n] for i in range(len(one) - n + 1)]
    left = [other[i : i + n] for i in range(len(other) - n + 1)]
    there, hits = len(left), 0
    for gram in said:
        if gram in left:
            left.remove(gram)
            hits += 1
    return hits, len(said), there


def f1(hits: int, told: int, there: int) -> float:
    if not hits:
        return 0.0
    precision, recall = hits / told, hits / there
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("seed", range(5))
def test_rouge_is_its_definition(seed: int) -> None:
    rng = random.Random(seed)
    texts = [[" ".join(rng.choices("abcde", k=rng.randint(1, 9))) for _ in range(7)] for _ in range(2)]
    found = scores(*texts)
    pairs = [(said.split(), right.split()) for said, right in zip(*texts, strict=True)]
    for name, n in (("rouge1", 1), ("rouge2", 2)):
        assert found[name] == pytest.approx(100 * sum(f1(*slow_hits(*pair, n)) for pair in pairs) / 7)
    in_order = [f1(slow_lcs(tuple(a), tuple(b)), len(a), len(b)) for a, b in pairs]
    assert found["rougeL"] == pytest.approx(100 * sum(in_order) / 7)


def test_english_scores_as_in_rouge_score() -> None:
    rng = random.Random(7)
    words = [
        "A",
        "free",
        "cross-platform",
        "(3D)",
        "game's",
        "engine,",
        "for",
        "the",
        "GNU/Linux",
        "desk_top",
        "1.5",
    ]
    texts = [[" ".join(rng.choices(words, k=rng.randint(1, 13))) for _ in range(53)] for _ in range(2)]
    names = list(NAMES)
    theirs = [RougeScorer(names).score(right, said) for said, right in zip(*texts, strict=True)]
    means = {name: 100 * sum(score[name].fmeasure for score in theirs) / 53 for name in names}
    assert scores(*texts) == pytest.approx(means)


def test_words_are_lower_case_and_ideographs_stand_alone() -> None:
    assert words("A free, cross-platform 3D_game!") == ["a", "free", "cross", "platform", "3d", "game"]
    assert words("Überall") == ["überall"]
    assert words("我们用Python写") == ["我", "们", "用", "python", "写"]
    assert words("हिन्दी भाषा।") == ["हिन्दी", "भाषा"], "vowel signs are no ends of words"
    assert words("e\u0301te\u0301") == ["e\u0301te\u0301"]
    assert scores(["我们来"], ["我们去"]) == pytest.approx(
        {"rouge1": 200 / 3, "rouge2": 50, "rougeL": 200 / 3}
    )


def test_nothing_said_scores_nothing() -> None:
    assert scores(["", "a"], ["a b", "..."]) == {"rouge1": 0, "rouge2": 0, "rougeL": 0}


def test_the_beginning_of_a_text() -> None:
    assert lead("One, two - three; four.", 3) == "One, two - three"
    assert lead("One.", 3) == "One"
    assert lead("...", 3) == ""
    assert lead("今天天气好", 2) == "今天"


def test_distinct_counts_over_all_texts_together() -> None:
    assert distinct(["a b a", "B a"]) == pytest.approx({"distinct_1": 40, "distinct_2": 200 / 3})
    assert distinct(["", "a"]) == {"distinct_1": 100, "distinct_2": 0}


def test_texts_count_as_often_as_they_are_drawn() -> None:
    found = mean([rouge("a b", "a"), rouge("b", "b"), rouge("c", "d")], np.array([[2.0, 0, 1], [0, 1, 1]]))
    assert found["rouge1"] == pytest.approx([2 * 200 / 3 / 3, 50])


def test_several_references_are_sacrebleus() -> None:
    said = ["the grey heron stands still", "fog lies over the river"]
    right = [["a grey heron stands still there", "the heron is still"], ["fog lies over the wide river"]]
    metric = bleu("13a")
    columns = [[right[0][0], right[1][0]], [right[0][1], None]]
    expected = corpus_bleu(said, columns).score
    assert total(counted_of_many(metric, said, right)) == pytest.approx(expected)
    assert expected > total(counted(metric, said, [right[0][1], right[1][0]]))
    assert "nrefs:var" in signature(bleu("13a"), [1, 2])
    assert "nrefs:2" in signature(bleu("13a"), [2])


def total(counts: SentenceCounts) -> float:
    (score,) = scored(bleu("13a"), np.sum(counts, axis=0, keepdims=True))
    return float(score)
