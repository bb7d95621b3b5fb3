"""Real positions laid end to end: nothing but the padding is lost."""

import pytest
import torch
from torch.autograd import gradcheck

from regard.attention import Attention, Rotary, Unpadded, padding

LENGTHS_B = torch.tensor([3, 7, 1, 5])
N_PLACES = 7


def test_gather_takes_the_real_positions_in_their_order() -> None:
    x_BT = torch.arange(28).view(4, N_PLACES)
    rows = [x_BT[row, :length] for row, length in enumerate(LENGTHS_B)]
    assert torch.equal(Unpadded(LENGTHS_B, N_PLACES).gather(x_BT), torch.cat(rows)[None])


def test_spread_puts_them_back_among_zeros() -> None:
    unpadded = Unpadded(LENGTHS_B, N_PLACES)
    x_BTD = torch.rand(4, N_PLACES, 5) + 1
    real_BT = torch.arange(N_PLACES) < LENGTHS_B[:, None]
    assert torch.equal(unpadded.pad(unpadded.gather(x_BTD)), x_BTD * real_BT[..., None])


def test_gradients_go_back_the_way_the_values_came() -> None:
    unpadded = Unpadded(LENGTHS_B, N_PLACES)
    x_BTD = torch.rand(4, N_PLACES, 3, dtype=torch.float64, requires_grad=True)
    x_1ND = torch.rand(1, int(LENGTHS_B.sum()), 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(unpadded.gather, x_BTD)
    assert gradcheck(unpadded.pad, x_1ND)


@pytest.mark.parametrize("rotary", [False, True])
def test_attention_sees_the_same(rotary: bool) -> None:
    torch.manual_seed(0)
    attention = Attention(12, n_heads=3, n_kv_heads=1, rotary=Rotary(4) if rotary else None)
    x_BTD, unpadded = torch.randn(4, N_PLACES, 12), Unpadded(LENGTHS_B, N_PLACES)
    padded_BTD, own = attention.self_attend(x_BTD, mask=padding(LENGTHS_B))
    packed_1ND, same = attention.self_attend(
        unpadded.gather(x_BTD), mask=padding(LENGTHS_B), unpadded=unpadded
    )
    torch.testing.assert_close(packed_1ND, unpadded.gather(padded_BTD))
    kept_BGKE = (torch.arange(N_PLACES) < LENGTHS_B[:, None])[:, None, :, None]
    torch.testing.assert_close(same.v_BGKW * kept_BGKE, own.v_BGKW * kept_BGKE)


@pytest.mark.parametrize(
    ("lengths", "worth_it"), [([7, 7, 7, 7], False), ([7, 7, 6, 7], False), ([7, 3, 7, 2], True)]
)
def test_rows_that_are_nearly_full_stay_as_they_are(lengths: list[int], worth_it: bool) -> None:
    assert (Unpadded.of(torch.tensor(lengths), N_PLACES) is not None) == worth_it
