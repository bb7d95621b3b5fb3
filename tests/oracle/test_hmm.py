"""The hidden Markov model against the list of all paths, with probabilities multiplied out."""

from collections import Counter
from itertools import pairwise, product
from math import prod

import pytest
import torch
from torch import Tensor

from regard.layers.inputs import tokens
from regard.models.hmm import HMM, HMMConfig
from regard.models.widths import Widths
from regard.text.tags import may_follow, scheme

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
    baum_welch_step = hmm.baum_welch_step(WORDS, torch.tensor(LENGTHS))
    by_hand = HMM.from_counts(*expectations(hmm), smoothing=0.0)
    for found, wanted in zip(vars(baum_welch_step).values(), vars(by_hand).values(), strict=True):
        torch.testing.assert_close(found.exp(), wanted.exp())


def test_rounds_never_make_the_words_less_likely(hmm: HMM) -> None:
    lengths = torch.tensor(LENGTHS)
    likelihoods = []
    for _ in range(30):
        likelihoods.append(float(hmm.log_likelihood(WORDS, lengths).sum()))
        hmm = hmm.baum_welch_step(WORDS, lengths)
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


TAGGED = [([0, 4, 2, 1], [2, 0, 1, 2]), ([3], [2]), ([2, 4], [0, 1]), ([1, 0, 0], [2, 2, 0])]
"""Words, and tags of ("B-X", "I-X", "O")."""


@pytest.mark.parametrize("names", [("B-X", "I-X", "O"), ("NOUN", "VERB", "X")], ids=["spans", "words"])
def test_a_tagger_that_counts_is_one(names: tuple[str, ...]) -> None:
    """Where a scheme forbids steps, the others share what these would have had."""
    config = HMMConfig(smoothing=0.3)
    tagger = config.build(Widths({"vocab": V}, {"tags": names})).eval()
    config.count(tagger, TAGGED)
    counted = HMM.counted(TAGGED, C, V, smoothing=0.3)
    found = scheme(names)

    def may(before: int | None, after: int | None) -> bool:
        named = (None if one is None else names[one] for one in (before, after))
        return found is None or may_follow(found, *named)

    step_CC = counted.step_CC.exp() * torch.tensor([[may(i, j) for j in range(C)] for i in range(C)])
    hmm = HMM(counted.begin_C, (step_CC / step_CC.sum(1, keepdim=True)).log(), counted.says_CV)
    lengths = torch.tensor(LENGTHS)
    keep_BT = torch.arange(4) < lengths[:, None]
    places_BT = torch.arange(WORDS.numel()).view_as(WORDS)
    scores_BTC = tagger.scores({**tokens(WORDS, lengths), "places": places_BT})
    best_BT, likely_BTC = tagger.best(scores_BTC, keep_BT), tagger.marginals(scores_BTC, keep_BT)
    for row, length in enumerate(LENGTHS):
        paths = {
            path: p
            for path, p in joint(hmm, WORDS[row, :length].tolist()).items()
            if may(None, path[0]) and may(path[-1], None) and all(may(*pair) for pair in pairwise(path))
        }
        assert tuple(best_BT[row, :length].tolist()) == max(paths, key=paths.__getitem__)
        for place, tag in product(range(length), range(C)):
            share = sum(p for path, p in paths.items() if path[place] == tag) / sum(paths.values())
            assert float(likely_BTC[row, place, tag]) == pytest.approx(share, abs=1e-6)
    torch.testing.assert_close(tagger.transitions(), hmm.step_CC.exp().float())


def test_words_alone_tell_two_tags_apart() -> None:
    """Words 0 and 1 take turns with 2 and 3: two tags that alternate say so best, whichever is which."""
    generator = torch.Generator().manual_seed(9)
    words_BT = torch.randint(2, (20, 8), generator=generator)
    words_BT[:, 1::2] += 2
    lengths_B = torch.full((20,), 8)
    hmm = HMM.random(2, 4, generator)
    for _ in range(60):
        hmm = hmm.baum_welch_step(words_BT, lengths_B)
    best_BT, _ = hmm.best(words_BT, lengths_B)
    assert (best_BT[:, 0::2] == best_BT[0, 0]).all()
    assert (best_BT[:, 1::2] == 1 - best_BT[0, 0]).all()
