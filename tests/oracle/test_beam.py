"""Searches against exhaustive enumeration, against a plain twin, and against themselves in other company."""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from oracle.chain import (
    BEGIN,
    CONTENT,
    END,
    MAX_LENGTH,
    Chain,
    Place,
    all_sequences,
    plain_beam,
    rescored,
    same,
)
from regard.decode import Hypothesis, Rules, hypotheses
from regard.decode import beam as beam_search
from regard.decode import greedy as greedy_search
from regard.layers.inputs import tokens
from regard.models import RNNConfig, TransformerConfig
from tiny import DIMS, Inputs, inputs, rnn, stirred, transformer

N_SEQUENCES = sum(len(CONTENT) ** n for n in range(MAX_LENGTH))
"""Every sequence of at most MAX_LENGTH tokens, its end counted: a beam this wide sees all of them."""
PENALTIES = [0.0, 0.6, 1.0, 2.5]


def ruled(searching: Callable[..., Any]) -> Callable[..., Any]:
    """The search under the plainest of rules."""

    def run(
        stepper: Any,
        state: Any,
        limits: Sequence[int],
        *,
        end: int,
        forbidden: Sequence[int] = (),
        **more: Any,
    ) -> Any:
        return searching(stepper, state, Rules(end, limits, forbidden), **more)

    return run


def beam(*given: Any, **options: Any) -> list[list[Hypothesis]]:
    return hypotheses(ruled(beam_search)(*given, **options))


def greedy(*given: Any, **options: Any) -> list[Hypothesis]:
    return [one for (one,) in hypotheses(ruled(greedy_search)(*given, **options))]


def search(stepper: Any, state: Any, lengths: Sequence[int], **options: Any) -> list[list[Hypothesis]]:
    return beam(stepper, state, lengths, begin=BEGIN, end=END, forbidden=(BEGIN,), **options)


@pytest.mark.parametrize("n_best", [1, 7])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_beam_of_full_width_is_exhaustive(penalty: float, n_best: int) -> None:
    chain = Chain(n_sources=3)
    options = {"width": N_SEQUENCES, "n_best": n_best, "length_penalty": penalty}
    found = search(chain, chain.start(), [MAX_LENGTH] * 3, **options)
    for source in range(3):
        same(found[source], all_sequences(chain.next(source), CONTENT, END, penalty)[:n_best])


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_narrow_beam_equals_the_plain_twin(penalty: float, width: int) -> None:
    chain, lengths = Chain(n_sources=5), [2, 7, 5, 11, 3]
    found = search(chain, chain.start(), lengths, width=width, n_best=width, length_penalty=penalty)
    for source, length in enumerate(lengths):
        same(found[source], plain_beam(chain.next(source), width, length, penalty))


def test_greedy_is_a_beam_of_one() -> None:
    """When length is not rewarded; else a beam of one may go on after an end, but never for the worse."""
    chain, lengths = Chain(n_sources=7), [1, 2, 3, 5, 7, 11, 13]
    options = {"begin": BEGIN, "end": END, "forbidden": (BEGIN,)}
    for penalty in PENALTIES:
        one = greedy(chain, chain.start(), lengths, length_penalty=penalty, **options)
        beams = beam(chain, chain.start(), lengths, width=1, length_penalty=penalty, **options)
        if penalty == 0:
            same(one, [best for (best,) in beams])
        else:
            assert all(best.score >= other.score - 1e-6 for (best,), other in zip(beams, one, strict=True))


def test_greedy_takes_the_likeliest_each_time() -> None:
    chain, lengths = Chain(n_sources=5), [3, 5, 7, 1, 2]
    found = greedy(chain, chain.start(), lengths, begin=BEGIN, end=END, forbidden=(BEGIN,))
    for source, length in enumerate(lengths):
        next_of, ids, total = chain.next(source), (), 0.0
        while True:
            log_probs = next_of(ids)
            allowed = (END,) if len(ids) + 1 == length else (END, *CONTENT)
            token = max(allowed, key=log_probs.__getitem__)
            total += log_probs[token]
            if token == END:
                break
            ids = (*ids, token)
        same([found[source]], rescored([(ids, total)], 1.0))


@pytest.mark.parametrize("width", [1, 3])
def test_the_end_is_forced_at_the_limit_and_costs_what_it_costs(width: int) -> None:
    chain = Chain(n_sources=2)
    chain.table[..., END] = -20.0
    for (best, *_), length in zip(search(chain, chain.start(), [5, 3], width=width), [5, 3], strict=True):
        assert len(best.ids) == length - 1
        assert best.log_prob < -15
    for best, length in zip(greedy(chain, chain.start(), [5, 3], begin=BEGIN, end=END), [5, 3], strict=True):
        assert len(best.ids) == length - 1
        assert best.log_prob < -15


def test_forbidden_tokens_are_never_written() -> None:
    chain = Chain(n_sources=3)
    chain.table[..., 3] += 10
    options = {"begin": BEGIN, "end": END, "forbidden": (BEGIN, 3)}
    found = [
        one for many in beam(chain, chain.start(), [7] * 3, width=5, n_best=5, **options) for one in many
    ]
    for hypothesis in (*found, *greedy(chain, chain.start(), [7] * 3, **options)):
        assert not {BEGIN, 3, END} & set(hypothesis.ids)


def test_sources_that_are_done_leave() -> None:
    chain = Chain(n_sources=3)
    chain.table[..., END] = -20.0
    search(chain, chain.start(), [2, 5, 3], width=2)
    assert chain.rows_seen == [6, 6, 4, 2, 2]
    chain.rows_seen.clear()
    greedy(chain, chain.start(), [2, 5, 3], begin=BEGIN, end=END)
    assert chain.rows_seen == [3, 3, 2, 1, 1]


def test_no_answers_are_made_up_when_there_are_fewer_than_asked_for() -> None:
    chain = Chain(n_sources=2)
    for found in search(chain, chain.start(), [1, 2], width=7, n_best=7):
        assert len({hypothesis.ids for hypothesis in found}) == len(found)
        assert all(math.isfinite(hypothesis.score) for hypothesis in found)
    assert [len(found) for found in search(chain, chain.start(), [1, 2], width=7, n_best=7)] == [1, 4]


@pytest.mark.parametrize("width", [1, 3])
def test_a_model_that_has_diverged_ends_the_search_all_the_same(width: int) -> None:
    class Diverged(Chain):
        def step(self, last_B: Tensor, state: Place) -> tuple[Tensor, Place]:
            assert len(self.rows_seen) < 20, "the search does not end"
            logits_BV, state = super().step(last_B, state)
            return logits_BV * math.nan, state

    chain = Diverged(n_sources=2)
    assert all(search(chain, chain.start(), [3, 5], width=width))
    assert len(greedy(chain, chain.start(), [3, 5], begin=BEGIN, end=END)) == 2


CONFIGS = {
    "transformer": transformer(),
    "transformer-rotary": transformer(position="rotary", norm="pre", n_kv_heads=1),
    "transformer-relative": transformer(position="relative"),
    "transformer-alibi": transformer(position="alibi"),
    "rnn-none": rnn(attention="none", cell="lstm", n_layers=2),
    "rnn-additive": rnn(),
    "rnn-luong": rnn(attention="general", order="luong"),
    "rnn-unfed": rnn(attention="dot", order="luong", input_feeding=False),
}
WORDS = (7, 11, 13)
FORBIDDEN = tuple(i for i in range(DIMS.target["vocab"]) if i not in (END, *WORDS))


class Uncached:
    """Searches by running the whole model on everything written so far, every time."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def step(self, last_B: Tensor, state: tuple[Inputs, Tensor]) -> tuple[Tensor, Any]:
        given, written_BT = state
        written_BT = torch.cat([written_BT, last_B[:, None]], dim=1)
        beams = len(last_B) // len(given.lengths_B)
        texts = [part.repeat_interleave(beams, dim=0) for part in given.texts]
        logits_BTV = self.model(tokens(*texts), written_BT).view(*written_BT.shape, -1)
        return logits_BTV[:, -1], (given, written_BT)

    def select(self, state: tuple[Inputs, Tensor], rows_B: Tensor, sources_B: Tensor | None = None) -> Any:
        given, written_BT = state
        if sources_B is not None:
            given = Inputs(given.source_BK[sources_B], given.lengths_B[sources_B], given.target_BT)
        return given, written_BT[rows_B]


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def model(request: pytest.FixtureRequest) -> Any:
    config: TransformerConfig | RNNConfig = request.param
    return stirred(config.build(DIMS))


def test_a_full_beam_over_a_model_is_exhaustive(model: Any) -> None:
    given = inputs(lengths=(5, 2))
    found = beam(
        model,
        model.start(given.sources),
        [MAX_LENGTH] * 2,
        width=N_SEQUENCES,
        n_best=11,
        begin=BEGIN,
        end=END,
        forbidden=FORBIDDEN,
        length_penalty=1.0,
    )
    longest = torch.tensor([(BEGIN, *ids) for ids in product(WORDS, repeat=MAX_LENGTH - 1)])
    for i in range(2):
        alone = given.row(i)
        texts = [part.expand(len(longest), *part.shape[1:]) for part in alone.texts]
        with torch.no_grad():
            log_probs = model(tokens(*texts), longest).log_softmax(-1).view(*longest.shape, -1)
        table = {
            tuple(row[1 : n + 1]): log_probs[place, n].tolist()
            for place, row in enumerate(longest.tolist())
            for n in range(MAX_LENGTH)
        }
        same(found[i], all_sequences(table.__getitem__, WORDS, END, 1.0)[:11])


def test_caches_change_nothing(model: Any) -> None:
    given, lengths = inputs(lengths=(5, 2, 3)), [5, 3, 7]
    fresh = (given, torch.empty(3, 0, dtype=torch.long))
    options = {"begin": BEGIN, "end": END, "forbidden": (BEGIN,)}
    cached = beam(model, model.start(given.sources), lengths, width=3, n_best=3, **options)
    for found, expected in zip(
        cached, beam(Uncached(model), fresh, lengths, width=3, n_best=3, **options), strict=True
    ):
        same(found, expected)
    fast = greedy(model, model.start(given.sources), lengths, **options)
    same(fast, greedy(Uncached(model), fresh, lengths, **options))


def test_company_changes_nothing(model: Any) -> None:
    """Rows of other lengths, and rows that leave early, are not noticed by the others."""
    given, lengths = inputs(lengths=(5, 2, 7, 1)), [7, 2, 3, 5]
    options = {"begin": BEGIN, "end": END, "forbidden": (BEGIN,)}
    together = beam(model, model.start(given.sources), lengths, width=3, n_best=2, **options)
    fast = greedy(model, model.start(given.sources), lengths, **options)
    for i, length in enumerate(lengths):
        alone = given.row(i)
        same(together[i], beam(model, model.start(alone.sources), [length], width=3, n_best=2, **options)[0])
        same([fast[i]], greedy(model, model.start(alone.sources), [length], **options))
