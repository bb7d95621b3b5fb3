"""The largest few by blocks are those of `torch.topk`."""

import pytest
import torch

from regard.decode.top import BLOCK, FEW, top


@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize("n_vocab", [9, BLOCK * FEW, BLOCK * FEW * 8, BLOCK * FEW * 8 + 37])
def test_the_same_as_torch(n_vocab: int, count: int) -> None:
    generator = torch.Generator().manual_seed(n_vocab + count)
    x_NV = torch.randn(11, n_vocab, generator=generator)
    x_NV[1, -1], x_NV[2, 0], x_NV[3, -2:] = 9.0, 9.0, torch.tensor([9.0, 8.0])
    x_NV[4] = -torch.inf
    x_NV[5, 5:] = -torch.inf
    x_NV[6] = x_NV[6].sort().values
    values, places = top(x_NV, count)
    expected = x_NV.topk(count, dim=-1)
    assert torch.equal(values, expected.values)
    assert torch.equal(x_NV.gather(1, places), values)
    assert all(len(set(row)) == count for row in places.tolist())


def test_what_is_no_number_is_not_hidden() -> None:
    x_NV = torch.zeros(2, BLOCK * FEW * 2)
    x_NV[0, 77] = torch.nan
    values, places = top(x_NV, 2)
    assert values[0, 0].isnan()
    assert places[0, 0] == 77
