"""The loss that makes its own gradients in slices, against torch's cross-entropy and against differences."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.layers import heads
from regard.layers.heads import smoothed_cross_entropy

N, V, D = 13, 7, 5


def made(*, bias: bool = True) -> list[Tensor]:
    shapes = [(N, D), (V, D), *([(V,)] if bias else [])]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.fixture(params=[1, 2, 5, N, N + 1], ids=lambda height: f"slices-of-{height}")
def _height(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "SLICE_ELEMENTS", request.param * V + V // 2)


@pytest.mark.usefixtures("_height")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_equals_torch(smoothing: float, bias: bool) -> None:
    given, target = made(bias=bias), torch.randint(V, (N,))
    smoothed, plain = smoothed_cross_entropy(target, smoothing)(*given, *([] if bias else [None]))
    logits = F.linear(*given)
    expected = F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(smoothed, expected)
    torch.testing.assert_close(plain, F.cross_entropy(logits, target, reduction="sum"))
    got = torch.autograd.grad(3 * smoothed, given)
    torch.testing.assert_close(got, torch.autograd.grad(3 * expected, given))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_gradients_are_those_of_small_differences(smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "SLICE_ELEMENTS", 5 * V)
    read = smoothed_cross_entropy(torch.randint(V, (N,)), smoothing)
    assert torch.autograd.gradcheck(lambda *given: read(*given)[0], made())


@pytest.mark.parametrize("learner", [0, 1, 2], ids=["hidden", "weight", "bias"])
def test_each_input_may_learn_alone(learner: int) -> None:
    given, target = made(), torch.randint(V, (N,))
    alone = [tensor if i == learner else tensor.detach() for i, tensor in enumerate(given)]
    (got,) = torch.autograd.grad(smoothed_cross_entropy(target, 0.1)(*alone)[0], [given[learner]])
    whole = F.cross_entropy(F.linear(*given), target, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(got, torch.autograd.grad(whole, given)[learner])


def test_the_plain_sum_is_only_shown() -> None:
    given = made()
    plain = smoothed_cross_entropy(torch.randint(V, (N,)), 0.1)(*given)[1]
    assert not any(gradient.any() for gradient in torch.autograd.grad(plain, given))


def test_no_gradient_is_made_when_nobody_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    given, target = made(), torch.randint(V, (N,))
    with torch.no_grad():
        monkeypatch.setattr(torch, "mm", None)  # only the gradient needs it
        smoothed, _ = smoothed_cross_entropy(target, 0.1)(*given)
    expected = F.cross_entropy(F.linear(*given), target, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(smoothed, expected.detach())


def test_large_scores_do_not_overflow() -> None:
    hidden, weight = torch.full((3, 2), 300.0), torch.tensor([[1.0, 1.0], [0.0, 0.0], [-1.0, 1.0]])
    hidden.requires_grad_()
    target = torch.tensor([0, 1, 2])
    smoothed, plain = smoothed_cross_entropy(target, 0.1)(hidden, weight, None)
    expected = F.cross_entropy(hidden.double() @ weight.double().T, target, reduction="sum")
    torch.testing.assert_close(plain.double(), expected, rtol=1e-6, atol=0)
    smoothed.backward()
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()
