"""What may be written, how it is drawn, groups of beams: each against a plain twin or by its definition."""

import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from oracle.chain import BEGIN, CONTENT, END, MAX_LENGTH, Chain, Next, all_sequences, plain_beam, same
from regard.decode import (
    Hypothesis,
    Phrases,
    Required,
    Rules,
    Sampler,
    Step,
    beam,
    contains,
    greedy,
    hypotheses,
    sample,
)

V = 7


def opened(rules: Rules, written: Sequence[int], logits: Tensor | None = None) -> set[int]:
    """The tokens that may follow."""
    logits = torch.randn(V) if logits is None else logits
    log_probs = rules.log_probs(logits[None], torch.tensor([list(written)], dtype=torch.long), [0])
    return set((log_probs[0] > -torch.inf).nonzero().flatten().tolist())


def test_lengths() -> None:
    rules = Rules(END, [5], min_length=2)
    assert END not in opened(rules, (2,))
    assert opened(rules, (2, 3)) == set(range(V))
    assert opened(rules, (2, 3, 4, 2)) == {END}
    assert opened(Rules(END, [3], min_length=9), (2, 3)) == {END}, "a limit is a limit"


def test_a_prefix_is_forced_and_costs_what_it_costs() -> None:
    rules = Rules(END, [9], prefixes=[(4, 2)])
    logits = torch.randn(V)
    forced = rules.log_probs(logits[None], torch.empty(1, 0, dtype=torch.long), [0])[0]
    assert opened(rules, ()) == {4}
    assert opened(rules, (4,)) == {2}
    assert opened(rules, (4, 2)) == set(range(V))
    assert forced[4] == torch.log_softmax(logits, -1)[4]


def test_each_source_has_its_own_limit_and_prefix() -> None:
    rules = Rules(END, [9, 2, 9], prefixes=[(4,), (), (3, 2)])
    log_probs = rules.log_probs(torch.randn(4, V), torch.tensor([[5]] * 4), [1, 2])
    assert (log_probs > -torch.inf).nonzero().tolist() == [[0, END], [1, END], [2, 2], [3, 2]]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_no_sequence_comes_twice(n: int) -> None:
    for written in product((2, 3), repeat=6):
        again = {
            token
            for token in range(V)
            if (grown := (*written, token))[-n:] in [grown[i : i + n] for i in range(len(grown) - n)]
        }
        assert opened(Rules(END, [99], no_repeat=n), written) == set(range(V)) - again
    assert opened(Rules(END, [99], no_repeat=n), ()) == set(range(V))


def test_repetition_is_penalised_once_whatever_its_sign() -> None:
    logits = torch.tensor([1.0, -2.0, 3.0, -4.0, 0.0, 5.0, 6.0])
    log_probs = Rules(END, [99], repetition_penalty=2.0).log_probs(
        logits[None], torch.tensor([[2, 3, 2]]), [0]
    )
    expected = torch.tensor([1.0, -2.0, 1.5, -8.0, 0.0, 5.0, 6.0])
    torch.testing.assert_close(log_probs[0], expected.log_softmax(-1))


def filtered(shares: Sequence[float], top_k: int, top_p: float, min_p: float) -> set[int]:
    """By the definitions, with lists."""
    order = sorted(range(len(shares)), key=lambda i: -shares[i])
    kept = order[:top_k] if top_k else order
    total, nucleus = sum(shares[i] for i in kept), []
    for i in kept:
        if sum(shares[j] for j in nucleus) >= top_p * total:
            break
        nucleus.append(i)
    return {i for i in nucleus if shares[i] >= min_p * shares[order[0]]}


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(
    ("top_k", "top_p", "min_p"), [(0, 1.0, 0.0), (3, 1.0, 0.0), (0, 0.7, 0.0), (5, 0.6, 0.2)]
)
def test_what_is_drawn_from(temperature: float, top_k: int, top_p: float, min_p: float) -> None:
    for _ in range(20):
        logits = torch.randn(V) * 2
        shares = torch.softmax(logits.double() / temperature, -1)
        draw = Sampler([(1,)], temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
        found = draw.weights(logits.log_softmax(-1)[None])[0]
        kept = filtered(shares.tolist(), top_k, top_p, min_p)
        assert set(found.nonzero().flatten().tolist()) == kept
        for i in kept:
            assert found[i].item() == pytest.approx(shares[i].item(), rel=1e-4)


def test_draws_come_as_often_as_they_should() -> None:
    log_probs = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    draw = Sampler([(i,) for i in range(4000)])
    counts = Counter(draw(log_probs.expand(4000, -1), range(4000)).tolist())
    for token, share in enumerate((0.5, 0.3, 0.15, 0.05)):
        assert counts[token] / 4000 == pytest.approx(share, abs=0.03)


def test_a_seed_draws_the_same_in_any_company() -> None:
    chain = Chain(n_sources=5)
    rules = Rules(END, [9] * 5, (BEGIN,))
    seeds = [(7, i) for i in range(5)]
    drawn = hypotheses(sample(chain, chain.start(), rules, begin=BEGIN, sampler=Sampler(seeds)))
    again = hypotheses(sample(chain, chain.start(), rules, begin=BEGIN, sampler=Sampler(seeds)))
    other = hypotheses(
        sample(chain, chain.start(), rules, begin=BEGIN, sampler=Sampler([(8, i) for i in range(5)]))
    )
    assert drawn == again != other


def plain_groups(
    next_of: Next, width: int, groups: int, diversity: float, limit: int
) -> list[list[tuple[float, tuple[int, ...]]]]:
    """Diverse beams with lists, the groups one after another at every step, without a length penalty."""
    each = width // groups
    live: list[list[tuple[float, tuple[int, ...]]]] = [[(0.0, ())] for _ in range(groups)]
    finished: list[list[tuple[float, tuple[int, ...]]]] = [[] for _ in range(groups)]
    over = [False] * groups
    for length in range(1, limit + 1):
        taken: Counter[int] = Counter()
        for group in range(groups):
            allowed = (END,) if length == limit else (END, *CONTENT)
            grown = [(p + next_of(ids)[t], ids, t) for p, ids in live[group] for t in allowed]
            if over[group]:
                grown = []
            best = sorted(grown, key=lambda one: -(one[0] - diversity * taken[one[2]]))[: 2 * each]
            finished[group] += [(p, ids) for p, ids, t in best[:each] if t == END]
            finished[group] = sorted(finished[group], reverse=True)[:each]
            live[group] = [(p, (*ids, t)) for p, ids, t in best if t != END][:each]
            top = max((p for p, _ in live[group]), default=-torch.inf)
            over[group] |= top == -torch.inf or (
                len(finished[group]) == each and top <= finished[group][-1][0]
            )
            if not over[group]:
                taken.update(ids[-1] for _, ids in live[group])
    return finished


@pytest.mark.parametrize("limits", [[5, 3, 6], [12, 10, 12]], ids=["short", "long"])
@pytest.mark.parametrize(("width", "groups"), [(4, 2), (6, 3), (3, 3)])
def test_groups_equal_the_plain_twin(width: int, groups: int, limits: list[int]) -> None:
    """Where there is room a group ends before the others, and then no longer pushes them away."""
    chain = Chain(n_sources=3)
    found = hypotheses(beam(
        chain, chain.start(), Rules(END, limits, (BEGIN,)),
        begin=BEGIN, width=width, groups=groups, diversity=0.8, length_penalty=0.0, n_best=width,
    ))  # fmt: skip
    for source, limit in enumerate(limits):
        expected = plain_groups(chain.next(source), width, groups, 0.8, limit)
        assert sorted(one.ids for one in found[source]) == sorted(
            {ids for lane in expected for _, ids in lane}
        )
        leaders = sorted({max(lane) for lane in expected if lane}, reverse=True)
        assert [one.ids for one in found[source][: len(leaders)]] == [ids for _, ids in leaders]


def test_one_group_is_a_plain_beam() -> None:
    chain = Chain(n_sources=2)
    found = hypotheses(
        beam(chain, chain.start(), Rules(END, [5, 7], (BEGIN,)), begin=BEGIN, width=3, n_best=3)
    )
    for source, limit in enumerate([5, 7]):
        same(found[source], plain_beam(chain.next(source), 3, limit, 1.0))


SEARCHES: dict[str, tuple[int, dict[str, Any]]] = {
    "greedy": (1, {}),
    "drawn": (1, {}),
    "beams": (4, {"n_best": 3}),
    "groups": (6, {"groups": 3, "diversity": 0.8, "n_best": 6}),
}
"""By name: how many rows a source has, and how it is searched for."""


def searching(kind: str, chain: Chain) -> Iterator[Step]:
    width, options = SEARCHES[kind]
    rules = Rules(END, [9, 5, 7, 3, 8], (BEGIN,))
    if width > 1:
        return beam(chain, chain.start(), rules, begin=BEGIN, width=width, **options)
    if kind == "drawn":
        return sample(chain, chain.start(), rules, begin=BEGIN, sampler=Sampler([(i,) for i in range(5)]))
    return greedy(chain, chain.start(), rules, begin=BEGIN)


@pytest.mark.parametrize("kind", ["greedy", "beams"])
def test_what_is_certain_is_how_the_answer_begins(kind: str) -> None:
    certain: list[list[tuple[int, ...]]] = [[] for _ in range(5)]
    answers: dict[int, Hypothesis] = {}
    for step in searching(kind, Chain(n_sources=5)):
        answers |= {source: best for source, (best, *_) in step.ended}
        for source, ids in step.beginnings().items():
            assert source not in answers, "what has ended no longer begins"
            certain[source].append(tuple(ids))
    assert any(certain)
    for source, heard in enumerate(certain):
        assert all(answers[source].ids[: len(ids)] == ids for ids in heard)
        assert heard == sorted(heard, key=len), "what was certain stays so"


def test_a_step_of_some_sources_has_their_places_among_all() -> None:
    step = Step([(1, [Hypothesis((5,), 0.0, 0.0)])], lambda: {0: (7, 2)}).at([3, 4])
    assert [source for source, _ in step.ended] == [4]
    assert step.beginnings() == {3: (7, 2)}


@pytest.mark.parametrize("kind", SEARCHES)
def test_each_source_ends_once_and_is_not_searched_for_any_longer(kind: str) -> None:
    chain = Chain(n_sources=5)
    ended = [(source, len(chain.rows_seen)) for step in searching(kind, chain) for source, _ in step.ended]
    assert sorted(source for source, _ in ended) == list(range(5))
    assert len({at for _, at in ended}) > 1, "they did not all end at once"
    width = SEARCHES[kind][0]
    running = [sum(at > step for _, at in ended) for step in range(len(chain.rows_seen))]
    assert chain.rows_seen == [width * count for count in running]


@pytest.mark.parametrize("kind", SEARCHES)
def test_who_stops_asking_stops_the_search(kind: str) -> None:
    chain = Chain(n_sources=5)
    steps = searching(kind, chain)
    assert chain.rows_seen == []
    next(steps)
    assert len(chain.rows_seen) == 1


SPELLINGS = ["", "", " cat", "e", "gory", " a", ".", "喜", "欢", " ", "c", "at", " 喜欢", "t"]
PHRASES = ["cat", "a cat", "喜欢", "at.", "t e"]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(2, len(SPELLINGS) - 1), max_size=6), st.lists(st.sampled_from(PHRASES), min_size=1)
)
def test_a_phrase_is_closed_exactly_where_it_would_be_complete(
    written: list[int], phrases: list[str]
) -> None:
    text = "".join(SPELLINGS[i] for i in written)
    if any(contains(text + "x", phrase) for phrase in phrases):  # complete already, whatever follows
        return
    automaton = Phrases(phrases, SPELLINGS, END)
    closed = automaton.completed_by(torch.tensor([written], dtype=torch.long).view(1, -1), [False])[
        0
    ].tolist()
    assert closed[END] == any(contains(text, phrase) for phrase in phrases)
    for piece in range(2, len(SPELLINGS)):
        grown = text + SPELLINGS[piece]
        assert closed[piece] == any(contains(grown + "x", phrase) for phrase in phrases), SPELLINGS[piece]
    before_end = automaton.completed_by(torch.tensor([written], dtype=torch.long).view(1, -1), [True])[
        0
    ].tolist()
    for piece in range(2, len(SPELLINGS)):
        grown = text + SPELLINGS[piece]
        ends = any(contains(grown, phrase) or contains(grown + "x", phrase) for phrase in phrases)
        assert before_end[piece] == ends


def test_long_phrases_and_a_large_vocabulary_cost_little() -> None:
    ideographs = [chr(0x4E00 + number) for number in range(3200)]
    spellings = ["", "", *ideographs, *(f" {one}{two}" for one in "abcd" for two in ideographs[:800])]
    phrases = ["".join(ideographs[at : at + 200]) for at in range(0, 3200, 200)]
    written_NT = torch.arange(2, 202).expand(3, -1)  # all but the end of the first phrase comes to nothing
    tracemalloc.start()
    automaton = Phrases(phrases, spellings, END)
    closed_NV = automaton.completed_by(written_NT[:, :199], [False] * 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert closed_NV.nonzero()[:, 1].tolist() == [201] * 3
    assert peak < 200e6, f"{peak / 1e6:.0f} MB"


def test_words_and_ideographs() -> None:
    assert contains("A cat.", "cat")
    assert contains("喜欢cat", "cat")
    assert not contains("category", "cat")
    assert not contains("bobcat", "cat")
    assert contains("我很喜欢它", "喜欢")
    assert not contains("喜。欢", "喜欢")
    for rare in ("𠮷𠮷家", "人々々", "ｶﾞｶﾞ", "豈豈"):
        assert contains(rare, rare[1:]), "of ideographs and kana beyond the usual ones too"


WORDS = ["", "", " a", " b", " c"]
"""Of the chain's tokens."""


def spelt(ids: Sequence[int]) -> str:
    return "".join(WORDS[i] for i in ids)


def required(*phrases: str) -> Required:
    tokens = [[WORDS.index(f" {word}") for word in phrase.split()] for phrase in phrases]
    return Required(phrases, tokens, WORDS, END, spelt)


@pytest.mark.parametrize("phrases", [("b",), ("b c",), ("a", "c"), ("a b", "c"), ("a a b",)])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_full_beam_finds_the_best_that_keeps_every_promise(
    phrases: tuple[str, ...], penalty: float
) -> None:
    chain = Chain(n_sources=2)
    rules = Rules(END, [MAX_LENGTH + 1] * 2, (BEGIN,), must_include=required(*phrases))
    wide = sum(len(CONTENT) ** n for n in range(MAX_LENGTH + 1))
    found = hypotheses(beam(chain, chain.start(), rules, begin=BEGIN, width=wide, length_penalty=penalty))
    for source in range(2):
        whole = all_sequences(chain.next(source), CONTENT, END, penalty, MAX_LENGTH + 1)
        kept = [one for one in whole if all(contains(spelt(one.ids), phrase) for phrase in phrases)]
        same(found[source], kept[:1])


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("limit", [5, 6, 9])
def test_promises_are_kept_by_any_beam(width: int, limit: int) -> None:
    chain = Chain(n_sources=7)
    chain.table[..., 3] -= 9  # what is promised is what the model would never say
    phrases = ("b b", "c b")  # they overlap
    rules = Rules(END, [limit] * 7, (BEGIN,), must_include=required(*phrases))
    for found in hypotheses(beam(chain, chain.start(), rules, begin=BEGIN, width=width, n_best=width)):
        assert found
        for one in found:
            assert one.score > -torch.inf
            assert all(contains(spelt(one.ids), phrase) for phrase in phrases)


def test_what_is_excluded_is_not_written_by_any_search() -> None:
    chain = Chain(n_sources=7)
    chain.table[..., 3] += 3
    rules = Rules(END, [6] * 7, (BEGIN,), must_not=Phrases(["b b", "b c", "a"], WORDS, END))
    searched = [
        one
        for steps in (
            greedy(chain, chain.start(), rules, begin=BEGIN),
            sample(chain, chain.start(), rules, begin=BEGIN, sampler=Sampler([(i,) for i in range(7)])),
            beam(chain, chain.start(), rules, begin=BEGIN, width=4, n_best=4),
        )
        for many in hypotheses(steps)
        for one in many
    ]
    assert any(3 in one.ids for one in searched)
    for one in searched:
        assert not any(contains(spelt(one.ids), phrase) for phrase in ("b b", "b c", "a"))
