"""Positions as modules; the formulas themselves are derived in oracle/test_definitions.py."""

import pytest
import torch

from regard.attention import ALiBi, Learned, RelativeBias, Rotary, Sinusoidal, TimeGaps, sinusoid

B, H, Q, K, D = 2, 3, 5, 11, 13


def test_sinusoids_take_positions_of_any_shape() -> None:
    table = sinusoid(torch.arange(K), D)
    positions_BT = torch.tensor([[0, 0, 3, 7], [10, 1, 1, 0]])
    assert table.shape == (K, D)
    assert torch.equal(Sinusoidal(D)(positions_BT), table[positions_BT])
    assert not list(Sinusoidal(D).state_dict())


def test_learned_positions_are_rows_of_a_table() -> None:
    learned, positions_BT = Learned(K, D), torch.tensor([[0, 0, 3, 7], [10, 1, 1, 0]])
    assert torch.equal(learned(positions_BT), learned.weight[positions_BT])
    with pytest.raises(IndexError, match="out of bounds"):
        learned(torch.tensor([K]))


def test_rotary_turns_each_row_by_its_own_positions() -> None:
    rotary, x = Rotary(8), torch.randn(B, H, Q, 8)
    positions_BT = torch.tensor([[0, 1, 2, 3, 4], [7, 3, 3, 0, 11]])
    turned = rotary(x, positions_BT)
    for row in range(B):
        torch.testing.assert_close(
            turned[row : row + 1], rotary(x[row : row + 1], positions_BT[row : row + 1])
        )
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[0, :, 0], x[0, :, 0])
    assert rotary(x.bfloat16(), positions_BT).dtype == torch.bfloat16


def test_rotary_needs_pairs() -> None:
    with pytest.raises(AssertionError, match="even head width"):
        Rotary(7)


@pytest.mark.parametrize("distance", [RelativeBias(H, causal=True), RelativeBias(H, causal=False), ALiBi(H)])
def test_a_bias_depends_on_distance_only(distance: RelativeBias | ALiBi) -> None:
    query_BQ, key_BK = torch.randint(0, 99, (B, Q)), torch.randint(0, 99, (B, K))
    bias = distance(query_BQ, key_BK)
    assert bias.shape == (B, H, Q, K)
    torch.testing.assert_close(distance(query_BQ + 1000, key_BK + 1000), bias)
    assert distance(query_BQ[:1], key_BK[:1]).shape == (1, H, Q, K)


def test_relative_bias_learns() -> None:
    distance = RelativeBias(H, causal=False)
    distance(torch.arange(Q)[None], torch.arange(K)[None]).sum().backward()
    assert distance.weight.grad is not None
    assert distance.weight.grad.sum() == H * Q * K


def test_alibi_is_minus_slope_times_distance() -> None:
    alibi = ALiBi(H)
    bias = alibi(torch.arange(Q)[None], torch.arange(K)[None])
    for head, slope in enumerate(alibi.slopes):
        for i in range(Q):
            for j in range(K):
                assert bias[0, head, i, j].item() == pytest.approx(-slope * abs(i - j))


def test_time_gaps_are_told_apart_by_octaves() -> None:
    gaps, times_1T = TimeGaps(H), torch.tensor([[0.0, 1, 3, 4, 7, 8, 1e8]], dtype=torch.float64)
    buckets = gaps.bucket(times_1T - times_1T[:, :1])[0]
    by_hand = [(1 + gap).bit_length() - (gap & (gap + 1) == 0) for gap in (0, 1, 3, 4, 7, 8, 10**8)]
    assert buckets.tolist() == by_hand
    bias_1HQK = gaps(times_1T, times_1T)
    assert torch.equal(bias_1HQK, bias_1HQK.transpose(2, 3)), "how long, not which way"
    assert torch.equal(bias_1HQK[0, :, 0], gaps.weight[buckets].T)
    assert torch.equal(gaps(times_1T + 60, times_1T + 60), bias_1HQK)
