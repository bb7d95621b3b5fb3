import math

import torch

from regard.linear import Linear


def test_computes_what_torch_computes() -> None:
    ours, theirs = Linear(7, 11), torch.nn.Linear(7, 11)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 3, 7)
    assert torch.equal(ours(x), theirs(x))


def test_starts_as_glorot_and_bengio_say() -> None:
    linear = Linear(301, 199)
    bound = math.sqrt(6 / (301 + 199))
    assert linear.weight.abs().max() <= bound
    assert abs(linear.weight.var().item() - 2 / (301 + 199)) < 1e-4
    assert linear.bias is not None
    assert not linear.bias.any()


def test_may_have_no_bias() -> None:
    linear = Linear(7, 11, bias=False)
    assert list(linear.state_dict()) == ["weight"]
    assert not linear(torch.zeros(2, 7)).any()
