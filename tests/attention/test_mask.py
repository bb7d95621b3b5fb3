"""Masks are values: combined with &, dense only for the rows that are asked for."""

from dataclasses import FrozenInstanceError
from itertools import permutations

import pytest
import torch
from torch import Tensor

from regard.attention import FULL, Mask, causal, chunk, only_keys, padding, prefix, segments, window

B, Q, K = 3, 5, 11
CPU = torch.device("cpu")
LENGTHS = torch.tensor([11, 4, 2])
SEGMENTS = torch.tensor([[0] * 4 + [1] * 7, [0] * 11, [0] * 2 + [1] * 3 + [2] * 6])
MASKS: dict[str, Mask] = {
    "causal": causal(),
    "padding": padding(LENGTHS),
    "only keys": only_keys(torch.arange(K) >= LENGTHS[:, None]),
    "window": window(2, 1),
    "chunk": chunk(3, left_chunks=1),
    "prefix": prefix(LENGTHS),
    "segments": segments(SEGMENTS),
}


def dense(mask: Mask, n_queries: int = Q, rows: range | None = None) -> Tensor:
    rows = range(n_queries) if rows is None else rows
    keep = mask.dense(rows, n_queries, K, CPU)
    assert keep is not None
    return keep.expand(B, 1, len(rows), K)


def drawn(mask: Mask, n_queries: int = K, row: int = 0) -> list[str]:
    return ["".join(".x"[seen] for seen in query) for query in dense(mask, n_queries)[row, 0].tolist()]


def test_pictures() -> None:
    assert drawn(causal(), 3) == ["xxxxxxxxx..", "xxxxxxxxxx.", "xxxxxxxxxxx"]
    assert drawn(window(2, 1), 3) == ["......xxxx.", ".......xxxx", "........xxx"]
    assert drawn(chunk(3, 1), 3) == ["...xxxxxx..", "......xxxxx", "......xxxxx"]
    assert drawn(prefix(torch.tensor([0, 4, 10])), 3, row=2) == ["xxxxxxxxxx.", "xxxxxxxxxx.", "xxxxxxxxxxx"]
    assert drawn(segments(SEGMENTS), 3) == ["....xxxxxxx"] * 3
    assert drawn(padding(LENGTHS), 1, row=1) == ["xxxx......."]


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_some_rows_are_a_slice_of_all(mask: Mask) -> None:
    for n_queries in (Q, K):
        whole = dense(mask, n_queries)
        assert torch.equal(dense(mask, n_queries, range(1, 4)), whole[:, :, 1:4])
    assert torch.equal(dense(mask, Q), dense(mask, K)[:, :, K - Q :])


def test_and_is_conjunction_in_any_order() -> None:
    for a, b, c in permutations(MASKS.values(), 3):
        expected = dense(a) & dense(b) & dense(c)
        assert torch.equal(dense((a & b) & c), expected)
        assert torch.equal(dense(a & (b & c)), expected)


def test_full_is_neutral_and_never_dense() -> None:
    assert FULL.dense(range(Q), Q, K, CPU) is None
    assert (FULL & causal()) == (causal() & FULL) == causal()


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masks_cannot_be_changed(mask: Mask) -> None:
    before = mask.parts
    with pytest.raises(FrozenInstanceError):
        mask.parts = ()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        mask.parts[0].by_query = None  # type: ignore[assignment]
    assert (mask & causal()).parts != before
    assert mask.parts is before


def test_one_newest_query_needs_no_causal_mask() -> None:
    assert causal().for_queries(1) == FULL
    assert not (causal() & padding(LENGTHS)).for_queries(1).by_query
    assert causal().for_queries(2) == causal()
    assert dense(causal(), 1).all()


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_dropping_what_cannot_matter_changes_nothing(mask: Mask) -> None:
    both = mask & causal()
    kept = both.for_queries(1).dense(range(1), 1, K, CPU)
    assert torch.equal(
        dense(both, 1), torch.ones(B, 1, 1, K, dtype=torch.bool) if kept is None else kept.expand(B, 1, 1, K)
    )


def test_plain_causal_is_recognised() -> None:
    assert causal().is_plain_causal
    assert (causal() & causal()).is_plain_causal
    assert not FULL.is_plain_causal
    assert not (causal() & padding(LENGTHS)).is_plain_causal
    assert not window(2).is_plain_causal


def test_by_query_says_whether_rows_differ() -> None:
    same = {name for name, mask in MASKS.items() if not mask.by_query}
    assert same == {"padding", "only keys"}
    for name in same:
        assert MASKS[name].dense(range(Q), Q, K, CPU).shape == (B, 1, 1, K)  # type: ignore[union-attr]
