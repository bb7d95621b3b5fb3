"""Searches over frames against all ways there are, written out one by one."""

import math
from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.decode.frames import Settings, begin_saying, begin_transducing, say, transduce
from regard.decode.hot_words import HotWords
from regard.layers.ctc import ctc_occupation
from regard.layers.transducer import Joint, transducer_loss

T, V, MOST = 3, 4, 2
NEVER = torch.tensor([], dtype=torch.long)


class Table:
    """A transducer whose prediction network is a table by all labels so far."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.frames_TF = torch.arange(float(T))[:, None]

    def row(self, labels: tuple[int, ...], frame: int) -> Tensor:
        generator = torch.Generator().manual_seed(hash((self.seed, labels, frame)) % 2**31)
        return torch.log_softmax(2 * torch.randn(V, generator=generator, dtype=torch.double), -1)

    def begin(self, n_rows: int) -> tuple[Tensor, ...]:
        return (torch.zeros(n_rows, T * MOST + 1, dtype=torch.long),)

    def write(self, labels_N: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (known_NL,) = state
        known_NL = known_NL.clone()
        for row, label in zip(known_NL, labels_N, strict=True):
            row[int((row != 0).sum())] = label
        return (known_NL,)

    def score(self, entered_NF: Tensor, state: tuple[Tensor, ...]) -> Tensor:
        rows = zip(entered_NF[:, 0].tolist(), state[0].tolist(), strict=True)
        return torch.stack(
            [self.row(tuple(one for one in known if one), int(frame)) for frame, known in rows]
        )

    def all_ways(self) -> dict[tuple[int, ...], float]:
        """The probability of all labels that may be written, over all ways to write them."""
        sums: dict[tuple[int, ...], float] = defaultdict(float)

        def go(frame: int, labels: tuple[int, ...], n_here: int, probability: float) -> None:
            if frame == T:
                sums[labels] += probability
                return
            steps = self.row(labels, frame).exp().tolist()
            go(frame + 1, labels, 0, probability * steps[0])
            if n_here < MOST:
                for label in range(1, V):
                    go(frame, (*labels, label), n_here + 1, probability * steps[label])

        go(0, (), 0, 1.0)
        return sums


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_search_of_a_transducer_is_exhaustive(seed: int) -> None:
    model = Table(seed)
    settings = Settings(100_000, MOST, NEVER)
    found = transduce(model, model.frames_TF[None], [T], begin_transducing(model, 1), settings).rows[0]
    right = model.all_ways()
    assert {path.labels for path in found} == set(right)
    for path in found:
        assert math.exp(path.log_prob) == pytest.approx(right[path.labels], rel=1e-6)
    assert [path.score for path in found] == sorted((path.score for path in found), reverse=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_narrow_search_finds_what_is_there(seed: int) -> None:
    model, right = Table(seed), Table(seed).all_ways()
    best = max(right, key=right.__getitem__)
    wide = transduce(
        model, model.frames_TF[None], [T], begin_transducing(model, 1), Settings(16, MOST, NEVER)
    )
    assert wide.rows[0][0].labels == best
    assert len(wide.rows[0]) == 16
    for path in wide.rows[0]:
        assert math.exp(path.log_prob) <= right[path.labels] * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_greedy_takes_the_likeliest_label_at_every_frame(seed: int) -> None:
    model, labels, frames, score = Table(seed), (), (), 0.0
    for frame in range(T):
        for n_here in range(MOST + 1):
            row = model.row(labels, frame)
            label = 0 if n_here == MOST else int(row.argmax())
            score += float(row[label])
            if label == 0:
                break
            labels, frames = (*labels, label), (*frames, frame)
    found = transduce(
        model, model.frames_TF[None], [T], begin_transducing(model, 1), Settings(1, MOST, NEVER)
    )
    (path,) = found.rows[0]
    assert (path.labels, path.frames) == (labels, frames)
    assert path.log_prob == pytest.approx(score)


def test_the_search_agrees_with_the_loss() -> None:
    """log p(labels) of a search that is wide enough is what the forward-backward algorithm says."""
    torch.manual_seed(0)
    encoded_BTF, weight_VF, bias_V = torch.randn(1, T, 5), torch.randn(V, 5), torch.randn(V)
    by_label = torch.randn(V, 5)

    class Model:
        def begin(self, n_rows: int) -> tuple[Tensor, ...]:
            return (by_label[:1].expand(n_rows, -1),)

        def write(self, labels_N: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return (by_label[labels_N],)

        def score(self, entered_NF: Tensor, state: tuple[Tensor, ...]) -> Tensor:
            return torch.log_softmax((entered_NF + state[0]).tanh() @ weight_VF.T + bias_V, -1)

    model: Any = Model()
    found = transduce(model, encoded_BTF, [T], begin_transducing(model, 1), Settings(100_000, 3, NEVER))
    for path in found.rows[0]:
        if 0 < len(path.labels) <= 3:
            labels_BU = torch.tensor([path.labels])
            predicted_BUF = torch.cat([by_label[:1], by_label[labels_BU[0]]])[None]
            joint = Joint(encoded_BTF, predicted_BUF, weight_VF, bias_V)
            loss_B = transducer_loss(joint, labels_BU, torch.tensor([T]), torch.tensor([len(path.labels)]))
            assert path.log_prob == pytest.approx(-float(loss_B), abs=1e-4)


def said(log_probs_TV: Tensor) -> dict[tuple[int, ...], float]:
    """The probability of all labels that CTC may say."""
    sums: dict[tuple[int, ...], float] = defaultdict(float)
    for way in product(range(log_probs_TV.shape[1]), repeat=len(log_probs_TV)):
        labels = [one for at, one in enumerate(way) if one and (at == 0 or way[at - 1] != one)]
        sums[tuple(labels)] += math.exp(sum(float(log_probs_TV[at, one]) for at, one in enumerate(way)))
    return sums


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_search_of_ctc_is_exhaustive(seed: int) -> None:
    torch.manual_seed(seed)
    log_probs_TV = torch.log_softmax(2 * torch.randn(5, V, dtype=torch.double), -1)
    right = said(log_probs_TV)
    found = say(log_probs_TV[None], [5], begin_saying(1), Settings(100_000, 1, NEVER)).rows[0]
    assert {path.labels for path in found} == set(right)
    for path in found:
        assert math.exp(path.log_prob) == pytest.approx(right[path.labels], rel=1e-6)


def test_greedy_ctc_collapses_what_is_likeliest() -> None:
    way = [0, 2, 2, 0, 2, 1, 1, 3, 0]
    log_probs_TV = torch.full((len(way), V), -5.0)
    log_probs_TV[range(len(way)), way] = -0.1
    (path,) = say(log_probs_TV[None], [len(way)], begin_saying(1), Settings(1, 1, NEVER)).rows[0]
    assert (path.labels, path.frames) == ((2, 2, 1, 3), (1, 4, 5, 7))


def test_what_is_never_written_is_not() -> None:
    torch.manual_seed(0)
    log_probs_TV = torch.log_softmax(torch.randn(5, V), -1)
    never = torch.tensor([1, 2])
    for width in (1, 50):
        found = say(log_probs_TV[None], [5], begin_saying(1), Settings(width, 1, never)).rows[0]
        model = Table(0)
        written = transduce(
            model, model.frames_TF[None], [T], begin_transducing(model, 1), Settings(width, MOST, never)
        )
        for path in (*found, *written.rows[0]):
            assert not {1, 2} & set(path.labels) or path.log_prob == -math.inf


@pytest.mark.parametrize("labels", [(1,), (2, 2), (1, 2, 1), (3, 1, 1)])
def test_the_occupation_of_ctc_is_that_of_all_ways(labels: tuple[int, ...]) -> None:
    torch.manual_seed(len(labels))
    log_probs_TV = torch.log_softmax(torch.randn(6, V), -1)
    right_UT, total = torch.zeros(len(labels), 6), 0.0
    for way in product(range(V), repeat=6):
        begins = [at for at, one in enumerate(way) if one and (at == 0 or way[at - 1] != one)]
        if tuple(way[at] for at in begins) != labels:
            continue
        probability = math.exp(sum(float(log_probs_TV[at, one]) for at, one in enumerate(way)))
        total += probability
        number = -1
        for at, one in enumerate(way):
            number += at in begins
            if one:
                right_UT[number, at] += probability
    found_UT = ctc_occupation(log_probs_TV, torch.tensor(labels))
    torch.testing.assert_close(found_UT, right_UT / total, atol=1e-5, rtol=1e-4)


def test_hot_words_earn_what_is_written_of_them() -> None:
    """After every label the bonus is that of whole phrases, and of the beginning that is being written."""
    phrases, bonus, rng = [(1, 2, 3), (2, 3), (2, 1), (3,)], 1.5, np.random.default_rng(0)
    words = HotWords(phrases, bonus)
    for _ in range(200):
        labels = tuple(rng.integers(1, 5, 9).tolist())
        node, total = 0, 0.0
        for label in labels:
            node, earned = words.after(node, label)
            total += earned
        assert total >= 0
        if not any(labels[at : at + len(one)] == one for one in phrases for at in range(9)):
            beginnings = (n for n in (2, 1) if any(labels[-n:] == one[:n] for one in phrases))
            assert total == pytest.approx(bonus * next(beginnings, 0))


def test_hot_words_bring_a_rare_word_forward() -> None:
    log_probs_TV = torch.log(torch.tensor([[0.1, 0.5, 0.4, 1e-9], [0.9, 0.05, 0.05, 1e-9]]))
    found = [
        say(log_probs_TV[None], [2], begin_saying(1), Settings(4, 1, NEVER, words)).rows[0][0].labels
        for words in (None, HotWords([(2,)], 1.0))
    ]
    assert found == [(1,), (2,)]
