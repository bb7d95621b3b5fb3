"""Losses with negatives, against their definitions, and against the whole softmax they stand for."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.layers.heads import HeadInput
from regard.layers.sampled import gbce, sampled_softmax

N, V, D, S = 5, 13, 7, 3


def made(*, bias: bool = True) -> list[Tensor]:
    shapes = [(N, D), (V, D), *([(V,)] if bias else [])]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def drawn() -> tuple[Tensor, Tensor]:
    """Targets and negatives, among which is one of the targets."""
    return torch.tensor([4, 0, 12, 7, 7]), torch.tensor([7, 2, 11])


@pytest.mark.parametrize("bias", [True, False])
def test_every_item_once_as_a_negative_is_the_whole_softmax(bias: bool) -> None:
    given, (target, _) = made(bias=bias), drawn()
    uniform = torch.full((V,), -math.log(V), dtype=torch.float64)
    found = sampled_softmax(target, torch.arange(V), uniform)(HeadInput(*given))
    whole = F.cross_entropy(F.linear(*given), target, reduction="sum")
    torch.testing.assert_close(found, whole)
    torch.testing.assert_close(torch.autograd.grad(found, given), torch.autograd.grad(whole, given))


def test_the_sum_of_exponentials_is_right_on_average() -> None:
    """Over all draws of one negative, weighed by their probabilities."""
    given, (target, _) = made(), drawn()
    q_V = torch.softmax(torch.randn(V, dtype=torch.float64), 0)
    scores_NV = F.linear(*given)
    for place in range(N):
        x = HeadInput(given[0][place : place + 1], *given[1:])
        score = scores_NV[place, target[place]]
        sums = [
            (sampled_softmax(target[place : place + 1], torch.tensor([item]), q_V.log())(x) + score).exp()
            for item in range(V)
        ]
        torch.testing.assert_close((q_V * torch.stack(sums)).sum(), scores_NV[place].exp().sum())


@pytest.mark.parametrize("calibration", [0.0, 0.3, 1.0])
def test_gbce_is_its_definition(calibration: float) -> None:
    given, (target, negatives) = made(), drawn()
    scores_NV = F.linear(*given)
    rate = S / (V - 1)
    beta = rate * (calibration * (1 - 1 / rate) + 1 / rate)
    total = torch.zeros((), dtype=torch.float64)
    for scores_V, right in zip(scores_NV, target.tolist(), strict=True):
        terms = (torch.sigmoid(scores_V[right]) ** beta).log()
        for item in negatives.tolist():
            if item != right:
                terms = terms + (1 - torch.sigmoid(scores_V[item])).log()
        total = total - terms / (S + 1)
    found = gbce(target, negatives, calibration)(HeadInput(*given))
    torch.testing.assert_close(found, total)
    torch.testing.assert_close(torch.autograd.grad(found, given), torch.autograd.grad(total, given))


def test_without_calibration_gbce_is_binary_cross_entropy() -> None:
    given, target, negatives = made(), torch.tensor([1, 2, 3, 4, 5]), torch.tensor([6, 7, 8])
    chosen_NK = torch.cat([target[:, None], negatives.expand(N, -1)], dim=1)
    scores_NK = F.linear(*given).gather(1, chosen_NK)
    right_NK = (torch.arange(S + 1) == 0).double().expand(N, -1)
    plain = F.binary_cross_entropy_with_logits(scores_NK, right_NK, reduction="sum") / (S + 1)
    torch.testing.assert_close(gbce(target, negatives, 0.0)(HeadInput(*given)), plain)
