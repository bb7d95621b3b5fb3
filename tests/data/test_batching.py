"""Batches: every example once, within the budget, in an order that only seed and epoch decide."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import batching
from regard.data.batching import WINDOW, Order, Place, Size, pack, permuted, sorted_batches, split

lengths = st.integers(1, 40)
pairs = st.lists(st.tuples(lengths, lengths), min_size=1, max_size=120)
texts = st.lists(st.tuples(lengths), min_size=1, max_size=120)
budgets = st.integers(1, 200)
quick = settings(max_examples=60, deadline=None)


def cost(batch: list[int], sizes: list[Size]) -> int:
    """Tokens after padding, of the side that needs more."""
    return len(batch) * max(max(sizes[i]) for i in batch)


def epoch_batches(sizes: list[Size], budget: int, seed: int, epoch: int) -> list[list[int]]:
    return list(Order(np.array(sizes), budget, seed).epoch(epoch))


def check(batches: list[list[int]], sizes: list[Size], budget: int) -> None:
    assert sorted(i for batch in batches for i in batch) == list(range(len(sizes)))
    assert all(batch and (cost(batch, sizes) <= budget or len(batch) == 1) for batch in batches)


@quick
@given(pairs | texts, budgets, st.integers(0, 2**40), st.integers(0, 50))
def test_an_epoch_holds_every_example_once_within_the_budget(
    sizes: list[Size], budget: int, seed: int, epoch: int
) -> None:
    batches = epoch_batches(sizes, budget, seed, epoch)
    check(batches, sizes, budget)
    assert batches == epoch_batches(sizes, budget, seed, epoch), "the same seed and epoch, the same order"


@quick
@given(st.integers(1, 3000), st.integers(0, 2**40), st.integers(0, 50))
def test_a_permutation_holds_every_number_once(n: int, seed: int, epoch: int) -> None:
    whole = permuted(np.arange(n), n, (seed, epoch))
    assert sorted(whole.tolist()) == list(range(n))
    some = np.arange(n // 3, n // 2)
    assert permuted(some, n, (seed, epoch)).tolist() == whole[some].tolist(), "any part of it alone"


def test_a_permutation_looks_random() -> None:
    """Where each number lands is uniform over seeds, and neighbours part: as for a true shuffle."""
    n, seeds = 50, 4000
    orders = np.stack([permuted(np.arange(n), n, (seed, 0)) for seed in range(seeds)])
    counts = np.stack([np.bincount(column, minlength=n) for column in orders.T])
    chi_square = ((counts - seeds / n) ** 2 / (seeds / n)).sum()
    assert abs(chi_square / (n * (n - 1)) - 1) < 0.12
    stays_together = (np.abs(np.diff(orders, axis=1)) == 1).mean()
    assert stays_together == pytest.approx(2 / n, rel=0.1)


def test_a_window_of_a_billion_examples_costs_no_more_than_one_of_a_thousand() -> None:
    n = 10**9
    found = permuted(np.arange(n - WINDOW, n), n, (1, 0))
    assert len(set(found.tolist())) == WINDOW
    assert found.min() >= 0
    assert found.max() < n


@quick
@given(pairs | texts, budgets, st.none() | st.integers(1, 7))
def test_evaluation_too_and_longest_first(sizes: list[Size], budget: int, max_rows: int | None) -> None:
    batches = sorted_batches(sizes, budget, max_rows)
    check(batches, sizes, budget)
    order = [sizes[i] for batch in batches for i in batch]
    assert order == sorted(order, reverse=True)
    assert max_rows is None or all(len(batch) <= max_rows for batch in batches)


@quick
@given(texts, budgets)
def test_packing_wastes_no_room_that_the_next_would_have_fitted_in(sizes: list[Size], budget: int) -> None:
    batches = list(pack(range(len(sizes)), sizes, budget))
    for batch, following in pairwise(batches):
        assert cost([*batch, following[0]], sizes) > budget


@quick
@given(st.lists(st.integers(), min_size=1, max_size=50), st.integers(1, 60))
def test_parts_make_up_the_batch_and_are_nearly_equal(batch: list[int], n_parts: int) -> None:
    parts = split(batch, n_parts)
    assert [i for part in parts for i in part] == batch
    assert len(parts) == min(n_parts, len(batch))
    heights = [len(part) for part in parts]
    assert min(heights) > 0
    assert max(heights) - min(heights) <= 1


def made(n: int = 1000) -> list[Size]:
    rng = np.random.default_rng(3)
    return [(int(a), int(b)) for a, b in rng.integers(1, 50, (n, 2))]


def test_epochs_and_seeds_differ() -> None:
    sizes = made()
    orders = [
        epoch_batches(sizes, 500, seed, epoch) for seed, epoch in ((1, 0), (1, 1), (2, 0), (0, 1), (1, 2))
    ]
    assert all(one != other for i, one in enumerate(orders) for other in orders[:i])
    members = [{frozenset(batch) for batch in order} for order in orders]
    assert members[0] != members[1], "not only the order: the company changes too"


def test_other_examples_share_a_window_in_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "WINDOW", 64)
    order = Order(np.array(made()), 500, 1)
    first, second = ({i for batch in order.window(epoch, 0) for i in batch} for epoch in (0, 1))
    assert len(first) == len(second) == 64
    assert len(first & second) < 20, "of a thousand, about four"


def test_other_examples_of_one_length_meet_in_every_epoch() -> None:
    """What differs in the other side too would always be sorted alike, were it not for the blur."""
    sizes = [(source, 7) for source in range(40, 140)]
    first, second = ({frozenset(batch) for batch in epoch_batches(sizes, 500, 1, epoch)} for epoch in (0, 1))
    assert len(first & second) < len(first) / 4


def test_batches_of_the_same_examples_come_in_another_order_in_every_epoch() -> None:
    sizes = [(length,) for length in range(1, 100)]
    first, second = (epoch_batches(sizes, 300, 1, epoch) for epoch in (0, 1))
    assert sorted(map(sorted, first)) == sorted(map(sorted, second)), (
        "there is one way to sort them by length"
    )
    assert list(map(sorted, first)) != list(map(sorted, second))


def test_batches_come_in_no_order_of_length() -> None:
    sizes = made()
    longest = [max(max(sizes[i]) for i in batch) for batch in epoch_batches(sizes, 500, 1, 0)]
    assert abs(np.corrcoef(longest, range(len(longest)))[0, 1]) < 0.5


def test_buckets_hold_examples_of_like_length() -> None:
    """Length-bucketed batches must pad much less than random ones."""
    sizes = made()
    real = sum(max(size) for size in sizes)
    padded = sum(cost(batch, sizes) for batch in epoch_batches(sizes, 500, 1, 0))
    random = sum(cost(batch, sizes) for batch in pack(range(len(sizes)), sizes, 500))
    assert padded / real < 1.35 < random / real


def test_large_sets_are_sorted_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "WINDOW", 64)
    sizes = made()
    batches = epoch_batches(sizes, 500, 1, 0)
    check(batches, sizes, 500)
    window = {i: place // 64 for place, i in enumerate(permuted(np.arange(1000), 1000, (1, 0)).tolist())}
    assert all(len({window[i] for i in batch}) == 1 for batch in batches)


def test_places_lead_through_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "WINDOW", 64)
    order, place = Order(np.array(made()), 500, 1), Place(0)
    for epoch in range(3):
        for batch in epoch_batches(made(), 500, 1, epoch):
            assert place.epoch == epoch
            assert order.batch(place) == batch
            place = order.after(place)
    assert place == Place(3)


def test_a_place_that_the_data_no_longer_has_leads_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "WINDOW", 64)
    order = Order(np.array(made()), 500, 1)
    for gone, following in ((Place(2, 3, 999), Place(2, 4)), (Place(2, 999, 5), Place(3))):
        assert order.batch(gone) is None
        assert order.after(gone) == following


def test_the_batches_of_an_epoch_are_counted_or_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = np.array(made(3000))
    exact = len(list(Order(sizes, 500, 1).epoch(0)))
    assert Order(sizes, 500, 1).n_batches == exact
    monkeypatch.setattr(batching, "WINDOW", 100)
    in_windows = len(list(Order(sizes, 500, 1).epoch(0)))
    assert Order(sizes, 500, 1).n_batches == pytest.approx(in_windows, rel=0.03)
