"""n-grams by hand: every one of every text counted in a dictionary, hashed with Python's own integers."""

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from regard.layers.inputs import Inputs, tokens
from regard.layers.ngrams import BOTH, CHARACTERS, PACE, POINT, PRIME, Ngrams, NgramsConfig

IDS = torch.tensor([[5, 7, 5, 7, 3], [11, 5, 7, 0, 0], [2, 0, 0, 0, 0]])
LENGTHS = torch.tensor([5, 3, 1])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]])


def bucket(ngram: tuple[int, ...], text: int, buckets: int) -> int:
    value = text + 1
    for token in ngram:
        value = value * POINT + token
    return value % PRIME % buckets


def by_hand(ids: list[int], texts: list[int], longest: int, buckets: int) -> list[tuple[int, int, int]]:
    """The place, the length and the bucket of every n-gram that is in one text, and of those in both."""
    found, first = [], set()
    for number in sorted(set(texts)):
        for n in range(1, longest + 1):
            for place in range(len(ids) - n + 1):
                ngram = tuple(ids[place : place + n])
                if set(texts[place : place + n]) == {number}:
                    found.append((place, n, bucket(ngram, number, buckets)))
                    if number == 0:
                        first.add(ngram)
                    elif ngram in first:
                        found.append((place, n, bucket(ngram, BOTH, buckets)))
    return found


def made(longest: int, buckets: int, n_classes: int = 3) -> Ngrams:
    torch.manual_seed(1)
    ngrams = Ngrams(NgramsConfig(longest=longest, buckets=buckets), n_classes).eval()
    with torch.no_grad():
        ngrams.weight.normal_()
    return ngrams


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(("longest", "buckets", "n_classes"), [(1, 2**16, 3), (3, 13, 2), (7, 101, 67)])
@torch.no_grad()
def test_scores_are_those_of_every_ngram_by_hand(
    pairs: bool, longest: int, buckets: int, n_classes: int
) -> None:
    ngrams = made(longest, buckets, n_classes)
    scores_BC = ngrams(tokens(IDS, LENGTHS, SEGMENTS if pairs else None))
    for row, length in enumerate(LENGTHS.tolist()):
        texts = SEGMENTS[row, :length].tolist() if pairs else [0] * length
        found = by_hand(IDS[row, :length].tolist(), texts, longest, buckets)
        sum_C = torch.stack([ngrams.weight[at] for _, _, at in found]).sum(0) * PACE / len(found) ** 0.5
        expected_C = sum_C if ngrams.output is None else ngrams.output(sum_C)
        torch.testing.assert_close(scores_BC[row], expected_C)


SPELLINGS = ["", "x", " the", "é雾", "", " am", "", "ber", "", "", "", " " + "long" * 9]
"""Of the tokens above; some spell nothing."""


def spelt(buckets: int, longest: int = 2, characters: int = 3) -> Ngrams:
    torch.manual_seed(1)
    config = NgramsConfig(longest=longest, characters=characters, buckets=buckets)
    ngrams = Ngrams(config, 3, len(SPELLINGS)).eval()
    ngrams.spell(SPELLINGS)
    with torch.no_grad():
        ngrams.weight.normal_()
        ngrams.idf_N.uniform_(1, 5)
    return ngrams


def places_by_hand(ngrams: Ngrams, row: int, texts: list[int]) -> list[tuple[int, int]]:
    """The token at which every n-gram of a row begins, and its bucket."""
    ids, buckets = IDS[row, : len(texts)].tolist(), len(ngrams.weight)
    found = [(place, at) for place, _, at in by_hand(ids, texts, ngrams.longest, buckets)]
    characters = [(place, 1 + ord(one)) for place, i in enumerate(ids) for one in SPELLINGS[i][:16]]
    for n in range(1, ngrams.characters + 1):
        for start in range(len(characters) - n + 1):
            some = characters[start : start + n]
            if len({texts[place] for place, _ in some}) == 1:
                ngram = tuple(code for _, code in some)
                found.append((some[0][0], bucket(ngram, CHARACTERS + texts[some[0][0]], buckets)))
    return found


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("buckets", [13, 2**16])
@torch.no_grad()
def test_ngrams_of_characters_are_those_that_the_tokens_spell(pairs: bool, buckets: int) -> None:
    ngrams = spelt(buckets)
    inputs = tokens(IDS, LENGTHS, SEGMENTS if pairs else None)
    scores_BC = ngrams(inputs)
    for row, length in enumerate(LENGTHS.tolist()):
        texts = SEGMENTS[row, :length].tolist() if pairs else [0] * length
        found = [at for _, at in places_by_hand(ngrams, row, texts)]
        weights = ngrams.idf_N[found]
        expected_C = PACE * (weights[:, None] * ngrams.weight[found]).sum(0) / weights.square().sum().sqrt()
        torch.testing.assert_close(scores_BC[row], expected_C)
    total_BC = torch.stack([effects_BXC.sum(1) for _, effects_BXC in ngrams.effects(inputs)]).sum(0)
    torch.testing.assert_close(total_BC, scores_BC)


@torch.no_grad()
def test_what_characters_say_is_their_tokens() -> None:
    ngrams = spelt(2**16, longest=1, characters=2)
    ngrams.weight.zero_()
    ngrams.weight[bucket((1 + ord("m"), 1 + ord("b")), CHARACTERS, 2**16)] = torch.tensor([0.0, 1.0, 0.0])
    shares_BT = ngrams.shares(tokens(IDS, LENGTHS), torch.tensor([[0.0, 1.0, 0.0]] * 3))
    torch.testing.assert_close(shares_BT[0], torch.tensor([0.25, 0.25, 0.25, 0.25, 0]))
    assert not shares_BT[2].any()


@torch.no_grad()
def test_rare_ngrams_weigh_as_scikit_learn_weighs_them() -> None:
    ngrams = spelt(97)
    ngrams.count([tokens(IDS[:2], LENGTHS[:2]), tokens(IDS[2:], LENGTHS[2:])])
    counts = np.zeros((3, 97))
    for row, length in enumerate(LENGTHS.tolist()):
        np.add.at(counts[row], [at for _, at in places_by_hand(ngrams, row, [0] * length)], 1)
    expected = TfidfTransformer().fit(counts).idf_
    np.testing.assert_allclose(ngrams.idf_N.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("n_classes", [3, 67])
@torch.no_grad()
def test_effects_add_up_to_the_scores(pairs: bool, n_classes: int) -> None:
    ngrams, inputs = made(3, 13, n_classes), tokens(IDS, LENGTHS, SEGMENTS if pairs else None)
    total_BC = torch.stack([effects_BTC.sum(1) for _, effects_BTC in ngrams.effects(inputs)]).sum(0)
    torch.testing.assert_close(total_BC, ngrams(inputs))


@torch.no_grad()
def test_a_share_is_what_the_ngrams_at_a_token_say() -> None:
    """Of an answer that a single n-gram speaks for, its tokens have all, in equal parts."""
    ngrams = made(2, 2**16, 2)
    ngrams.weight.zero_()
    ngrams.weight[bucket((5, 7), 0, 2**16)] = torch.tensor([0.0, 1.0])
    shares_BT = ngrams.shares(tokens(IDS, LENGTHS), torch.tensor([[0.0, 1.0]] * 3))
    expected = torch.tensor([[0.25, 0.25, 0.25, 0.25, 0], [0, 0.5, 0.5, 0, 0], [0.0, 0, 0, 0, 0]])
    torch.testing.assert_close(shares_BT, expected)


def test_dropout_leaves_out_whole_ngrams() -> None:
    ngrams = Ngrams(NgramsConfig(longest=1, buckets=64, dropout=0.5), 2)
    with torch.no_grad():
        ngrams.weight.fill_(1.0)
        scores_BC = ngrams(tokens(torch.arange(40).repeat(50, 1), torch.full((50,), 40)))
    assert torch.equal(scores_BC[:, 0], scores_BC[:, 1]), "all answers lose the same n-grams"
    kept_B = scores_BC[:, 0] * 40**0.5 / PACE / 2
    torch.testing.assert_close(kept_B, kept_B.round(), rtol=0, atol=1e-3)
    assert 15 < float(kept_B.mean()) < 25
    assert len(set(kept_B.round().tolist())) > 3


def test_it_learns_what_logistic_regression_learns_from_the_same_features() -> None:
    """The loss is convex: whoever minimises it with the same penalty finds the same scores."""
    rng = np.random.default_rng(3)
    ids = torch.from_numpy(rng.integers(4, 12, (60, 6)))
    lengths = torch.from_numpy(rng.integers(2, 7, 60))
    gold = torch.from_numpy(np.array([int((row == 5).any()) + int(row[0] == 7) for row in ids.numpy()]))
    ngrams, inputs = Ngrams(NgramsConfig(longest=2, buckets=97, dropout=0.0), 3), tokens(ids, lengths)
    features = np.zeros((60, 97))
    for row, length in enumerate(lengths.tolist()):
        found = by_hand(ids[row, :length].tolist(), [0] * length, 2, 97)
        np.add.at(features[row], [at for _, _, at in found], PACE / len(found) ** 0.5)
    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs.fit(features, gold.numpy())
    optimizer = torch.optim.LBFGS(ngrams.parameters(), max_iter=500, tolerance_grad=1e-9, tolerance_change=0)

    def loss() -> Tensor:
        optimizer.zero_grad()
        fit = torch.nn.functional.cross_entropy(ngrams(inputs), gold, reduction="sum")
        whole = fit + ngrams.weight.square().sum() / 2
        whole.backward()  # type: ignore[no-untyped-call]
        return whole

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    ours = torch.softmax(ngrams(inputs).detach(), -1).numpy()
    np.testing.assert_allclose(ours, theirs.predict_proba(features), atol=1e-4)


@torch.no_grad()
def test_neighbours_in_a_batch_change_nothing() -> None:
    ngrams, inputs = made(3, 2**16), tokens(IDS, LENGTHS, SEGMENTS)

    def alone(row: int, length: int) -> Inputs:
        own = slice(row, row + 1)
        return tokens(IDS[own, :length], LENGTHS[own], SEGMENTS[own, :length])

    singles = [ngrams(alone(row, length)) for row, length in enumerate(LENGTHS.tolist())]
    torch.testing.assert_close(torch.cat(singles), ngrams(inputs))
