"""The hidden Markov model against the list of all paths, with probabilities multiplied out."""

from collections import Counter
from itertools import pairwise, product
from math import prod

import pytest
import torch
from torch import Tensor

from regard.models.hmm import HMM

C, V = 3, 5
LENGTHS = (4, 1, 3)
WORDS = torch.tensor([[0, 4, 2, 2], [3, 0, 0, 0], [1, 1, 4, 0]])


@pytest.fixture
def hmm() -> HMM:
    return HMM.random(C, V, torch.Generator().manual_seed(5))


def joint(hmm: HMM, words: list[int]) -> dict[tuple[int, ...], float]:
    """p(words, tags) of every sequence of tags."""
    begin, step, says = (table.exp().tolist() for table in (hmm.begin_C, hmm.step_CC, hmm.says_CV))
    return {
        tags: begin[tags[0]]
        * prod(step[before][after] for before, after in pairwise(tags))
        * prod(says[tag][word] for tag, word in zip(tags, words, strict=True))
        for tags in product(range(C), repeat=len(words))
    }


def expectations(hmm: HMM) -> tuple[Tensor, Tensor, Tensor]:
    begin, step, says = (torch.zeros(shape, dtype=torch.double) for shape in ((C,), (C, C), (C, V)))
    for row, length in enumerate(LENGTHS):
        words = WORDS[row, :length].tolist()
        paths = joint(hmm, words)
        for tags, probability in paths.items():
            share = probability / sum(paths.values())
            begin[tags[0]] += share
            for before, after in pairwise(tags):
                step[before, after] += share
            for tag, word in zip(tags, words, strict=True):
                says[tag, word] += share
    return begin, step, says


def test_likelihood_best_tags_and_marginals(hmm: HMM) -> None:
    lengths = torch.tensor(LENGTHS)
    likely_B, (best_BT, score_B) = hmm.log_likelihood(WORDS, lengths), hmm.best(WORDS, lengths)
    marginals_BTC = hmm.marginals(WORDS, lengths)
    for row, length in enumerate(LENGTHS):
        paths = joint(hmm, WORDS[row, :length].tolist())
        total = sum(paths.values())
        assert float(likely_B[row].exp()) == pytest.approx(total)
        best = max(paths, key=paths.__getitem__)
        assert tuple(best_BT[row, :length].tolist()) == best
        assert float(score_B[row].exp()) == pytest.approx(paths[best])
        for place, tag in product(range(length), range(C)):
            share = sum(p for tags, p in paths.items() if tags[place] == tag) / total
            assert float(marginals_BTC[row, place, tag]) == pytest.approx(share)


def test_a_round_of_baum_welch_counts_what_is_expected(hmm: HMM) -> None:
    improved = hmm.improved(WORDS, torch.tensor(LENGTHS))
    by_hand = HMM.of_counts(*expectations(hmm), smoothing=0.0)
    for found, wanted in zip(vars(improved).values(), vars(by_hand).values(), strict=True):
        torch.testing.assert_close(found.exp(), wanted.exp())


def test_rounds_never_make_the_words_less_likely(hmm: HMM) -> None:
    lengths = torch.tensor(LENGTHS)
    likelihoods = []
    for _ in range(30):
        likelihoods.append(float(hmm.log_likelihood(WORDS, lengths).sum()))
        hmm = hmm.improved(WORDS, lengths)
    assert all(after >= before - 1e-9 for before, after in pairwise(likelihoods))
    assert likelihoods[-1] > likelihoods[0] + 1


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_counting(smoothing: float) -> None:
    sentences = [([0, 4, 2], [1, 0, 1]), ([3], [0]), ([2, 4], [1, 1])]
    hmm = HMM.counted(sentences, C, V, smoothing=smoothing)
    begins = Counter(tags[0] for _, tags in sentences)
    steps = Counter(pair for _, tags in sentences for pair in pairwise(tags))
    said = Counter(pair for words, tags in sentences for pair in zip(tags, words, strict=True))
    for tag in range(C):
        share = (begins[tag] + smoothing) / (len(sentences) + C * smoothing)
        assert float(hmm.begin_C[tag].exp()) == pytest.approx(share)
        for counts, table, size in ((steps, hmm.step_CC, C), (said, hmm.says_CV, V)):
            total = sum(counts[tag, other] for other in range(size)) + size * smoothing
            for other in range(size):
                share = (counts[tag, other] + smoothing) / total if total else 1 / size
                assert float(table[tag, other].exp()) == pytest.approx(share)


def test_words_alone_tell_two_tags_apart() -> None:
    """Words 0 and 1 take turns with 2 and 3: two tags that alternate say so best, whichever is which."""
    generator = torch.Generator().manual_seed(9)
    words_BT = torch.randint(2, (20, 8), generator=generator)
    words_BT[:, 1::2] += 2
    lengths_B = torch.full((20,), 8)
    hmm = HMM.random(2, 4, generator)
    for _ in range(60):
        hmm = hmm.improved(words_BT, lengths_B)
    best_BT, _ = hmm.best(words_BT, lengths_B)
    assert (best_BT[:, 0::2] == best_BT[0, 0]).all()
    assert (best_BT[:, 1::2] == 1 - best_BT[0, 0]).all()
