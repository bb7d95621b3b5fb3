"""Our dropout draws its own bits: rate, scale, reproducibility, and one mask for both passes."""

import math

import pytest
import torch
from torch import Tensor

from regard.layers.dropout import Dropout

RATES = [0.01, 0.1, 0.3, 0.5, 0.93]


def dropped(p: float, x: Tensor, seed: int = 1) -> Tensor:
    torch.manual_seed(seed)
    return Dropout(p)(x)


@pytest.mark.parametrize("p", RATES)
def test_drops_as_often_as_asked(p: float) -> None:
    """Within five standard deviations of the binomial distribution; so does each lane of the 64 bits."""
    n = 400_000
    kept = dropped(p, torch.ones(n)) != 0
    for lane in (kept, *kept.view(-1, 4).T):
        allowed = 5 * math.sqrt(p * (1 - p) / lane.numel()) + 1 / 65536
        assert abs(1 - lane.float().mean().item() - p) < allowed


def test_neighbours_are_dropped_independently() -> None:
    """Four neighbours share one draw of 64 bits: no pair of them may be correlated."""
    kept = (dropped(0.5, torch.ones(400_000)) != 0).view(-1, 4).float()
    correlation = torch.corrcoef(kept.T) - torch.eye(4)
    assert correlation.abs().max().item() < 5 / math.sqrt(100_000)


@pytest.mark.parametrize("p", RATES)
def test_what_stays_is_scaled_and_the_mean_is_kept(p: float) -> None:
    x = torch.randn(200_000) + 2
    out = dropped(p, x)
    stays = out != 0
    torch.testing.assert_close(out[stays], x[stays] / (1 - p), rtol=2e-3, atol=0)
    deviation = (x.square().mean() * p / (1 - p) / x.numel()).sqrt().item()
    assert abs(out.mean().item() - x.mean().item()) < 5 * deviation


def test_the_seed_decides() -> None:
    x = torch.randn(3, 5, 7)
    assert torch.equal(dropped(0.5, x, seed=1), dropped(0.5, x, seed=1))
    assert not torch.equal(dropped(0.5, x, seed=1), dropped(0.5, x, seed=2))
    torch.manual_seed(1)
    first, second = Dropout(0.5)(x), Dropout(0.5)(x)
    assert not torch.equal(first, second), "every call draws anew"


@pytest.mark.parametrize("shape", [(1,), (2, 3), (5, 7, 11), (0, 3)])
def test_backward_uses_the_mask_of_the_forward_pass(shape: tuple[int, ...]) -> None:
    x = torch.rand(shape, dtype=torch.float64) + 1
    x.requires_grad_()
    out = dropped(0.4, x)
    weight = torch.randn(shape, dtype=torch.float64)
    (out * weight).sum().backward()
    assert out.shape == shape
    torch.testing.assert_close(x.grad, weight * (out / x).detach())


def test_views_are_dropped_by_their_own_layout() -> None:
    x = torch.rand(5, 7).T + 1
    assert dropped(0.5, x).shape == (7, 5)
    torch.testing.assert_close(dropped(0.5, x), dropped(0.5, x.contiguous()))


def test_gradients_are_those_of_small_differences() -> None:
    x = torch.randn(7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: dropped(0.5, x), x)


def test_is_the_identity_when_not_training_and_at_zero() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.9).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_a_rate_near_one_still_leaves_something_to_scale() -> None:
    assert dropped(0.9999999, torch.ones(100)).isfinite().all()
