"""The best of a catalogue, and the place of one item in it, against sorting everything in Python."""

import math

import pytest
import torch
from torch import Tensor

from regard.layers import retrieval
from regard.layers.heads import HeadInput, logits
from regard.layers.retrieval import Excluded, target_ranks, top_items

B, V, D = 5, 23, 7


@pytest.fixture(autouse=True, params=[3, 7, V, V + 1], ids=lambda size: f"blocks-of-{size}")
def _block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "BLOCK", request.param)


def made(*, bias: bool) -> HeadInput:
    """Small integers, so that many scores are equal, and so to the bit."""
    shapes = [(B, D), (V, D), *([(V,)] if bias else [])]
    return HeadInput(*(torch.randint(-2, 3, shape).float() for shape in shapes))


def ordered(x: HeadInput, row: int, excluded: set[int]) -> list[tuple[float, int]]:
    """Score and number of every item that may be retrieved, the best and of equal ones the lowest first."""
    bias = torch.zeros(V) if x.bias_V is None else x.bias_V
    scores = (x.weight_VD @ x.hidden_ND[row] + bias).tolist()
    return sorted(
        ((score, item) for item, score in enumerate(scores) if item not in excluded),
        key=lambda pair: (-pair[0], pair[1]),
    )


EXCLUDED: list[set[int]] = [{0, 4, 22}, set(), {7}, set(range(V)) - {5, 6}, {1}]


def pairs() -> Excluded:
    found = sorted((item, row) for row, items in enumerate(EXCLUDED) for item in items)
    items, rows = zip(*found, strict=True)
    return Excluded(torch.tensor(rows), torch.tensor(items))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("k", [1, 3, V, V + 5])
@pytest.mark.parametrize("excludes", [False, True])
def test_the_best_items_are_those_of_a_whole_sort(k: int, bias: bool, excludes: bool) -> None:
    x = made(bias=bias)
    scores_BK, items_BK, log_z_B1 = top_items(x, k, pairs() if excludes else None)
    torch.testing.assert_close(log_z_B1[:, 0], logits(x).logsumexp(1))
    assert items_BK.shape == (B, min(k, V))
    for row in range(B):
        right = ordered(x, row, EXCLUDED[row] if excludes else set())[:k]
        found = list(zip(scores_BK[row].tolist(), items_BK[row].tolist(), strict=True))
        assert found[: len(right)] == right
        assert all(score == -math.inf for score, _ in found[len(right) :])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("excludes", [False, True])
def test_the_rank_is_the_place_in_a_whole_sort(bias: bool, excludes: bool) -> None:
    x = made(bias=bias)
    for target in range(V):
        rank_B, log_prob_B = target_ranks(x, torch.full((B,), target), pairs() if excludes else None)
        for row in range(B):
            order = [item for _, item in ordered(x, row, EXCLUDED[row] if excludes else set())]
            assert rank_B[row] == (order.index(target) + 1 if target in order else V)
            whole = torch.tensor(
                [score for score, _ in sorted(ordered(x, row, set()), key=lambda one: one[1])]
            )
            torch.testing.assert_close(log_prob_B[row], torch.log_softmax(whole, 0)[target])


def test_an_item_outside_of_the_catalogue_is_never_found() -> None:
    rank_B, log_prob_B = target_ranks(made(bias=False), torch.full((B,), -1))
    assert rank_B.tolist() == [V] * B
    assert log_prob_B.tolist() == [-math.inf] * B


def test_the_rank_of_a_target_is_where_the_best_items_have_it() -> None:
    """Also where scores are any numbers: both come from the same product."""
    x = HeadInput(torch.randn(B, D), torch.randn(V, D))
    items_BV: Tensor = top_items(x, V).items_BK
    for place in range(V):
        assert target_ranks(x, items_BV[:, place])[0].tolist() == [place + 1] * B
