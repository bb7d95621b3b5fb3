"""Scores of captions, beside the Python of pycocoevalcap, on words as they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider_scorer import CiderScorer
from pycocoevalcap.rouge.rouge import Rouge

from regard.metrics.captions import Cut, bleu, bleu_counts, cider_d, rouge_l
from regard.metrics.resample import unweighted
from regard.tasks.caption_tally import CaptionTally

WORDS = ["a", "the", "dog", "cat", "bird", "left", "right", "of", "above", "and"]


def corpus(seed: int, n: int = 11, most: int = 4) -> tuple[list[str], list[list[str]]]:
    rng = np.random.default_rng(seed)

    def text() -> str:
        return " ".join(rng.choice(WORDS, rng.integers(1, 9)))

    references = [[text() for _ in range(rng.integers(1, most + 1))] for _ in range(n)]
    captions = [text() if rng.random() < 0.6 else rng.choice(several) for several in references]
    return captions, references


def theirs(captions: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[Any, Any, Any]:
    answers = {number: [one] for number, one in enumerate(captions)}
    right = {number: list(several) for number, several in enumerate(references)}
    scorer = CiderScorer(n=4, sigma=6.0)
    for number in answers:
        scorer += (answers[number][0], right[number])
    _, cider = scorer.compute_score()
    return (
        Bleu(4).compute_score(right, answers, verbose=0)[0],
        Rouge().compute_score(right, answers)[1],
        cider,
    )


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_the_field(seed: int) -> None:
    captions, references = corpus(seed)
    cut = Cut.of(captions, references)
    bleus, rouges, ciders = theirs(captions, references)
    ours = bleu(bleu_counts(cut).sum(0, keepdims=True))
    np.testing.assert_allclose([ours[f"bleu{n}"][0] for n in (1, 2, 3, 4)], 100 * np.array(bleus), rtol=1e-6)
    np.testing.assert_allclose(rouge_l(cut), 100 * np.array(rouges), rtol=1e-9)
    np.testing.assert_allclose(cider_d(cut), 100 * np.array(ciders), rtol=1e-9, atol=1e-9)


def test_a_tally_is_scored_as_its_parts_together_and_people_stand_beside_it() -> None:
    captions, references = corpus(7)
    whole = CaptionTally(captions, references, [(1, 2)] * 11)
    parts = [
        CaptionTally(captions[cut], references[cut], [(1, 2)] * len(captions[cut]))
        for cut in (slice(4), slice(4, None))
    ]
    assert (parts[0] + parts[1]).metrics() == whole.metrics()
    assert whole.metrics()["pointing"] == 50
    several = [one for one in references if len(one) > 1]
    people = CaptionTally([one[0] for one in several], [one[1:] for one in several], [(0, 0)] * len(several))
    assert whole.by_kind()["first reference against the others"] == unweighted(people)
    assert "pointing" not in people.metrics()


def test_an_empty_caption_scores_nothing_and_breaks_nothing() -> None:
    tally = CaptionTally(["", "a dog"], [["a cat"], ["a dog"]], [(0, 0)] * 2)
    assert all(np.isfinite(score) for score in tally.metrics().values())
    assert rouge_l(Cut.of([""], [["a cat"]])).tolist() == [0.0]
