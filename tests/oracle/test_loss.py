"""The loss, fused and by its definition, against torch's cross-entropy and against differences."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.layers import heads
from regard.layers.copying import Copied
from regard.layers.cpu import cross_entropy
from regard.layers.heads import HeadInput, smoothed_cross_entropy

N, V, D, K = 13, 7, 5, 11

pytestmark = pytest.mark.usefixtures("cpu_kernels")


def made(*, bias: bool = True) -> list[Tensor]:
    shapes = [(N, D), (V, D), *([(V,)] if bias else [])]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.fixture(params=[1, 2, 5, N, N + 1], ids=lambda height: f"slices-of-{height}")
def _height(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "SLICE_ELEMENTS", request.param * V + V // 2)


@pytest.mark.usefixtures("_height")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_equals_torch(smoothing: float, bias: bool) -> None:
    given, target = made(bias=bias), torch.randint(V, (N,))
    smoothed, plain = smoothed_cross_entropy(target, smoothing)(HeadInput(*given))
    logits = F.linear(*given)
    expected = F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(smoothed, expected)
    torch.testing.assert_close(plain, F.cross_entropy(logits, target, reduction="sum"))
    got = torch.autograd.grad(3 * smoothed, given)
    torch.testing.assert_close(got, torch.autograd.grad(3 * expected, given))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_gradients_are_those_of_small_differences(smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "SLICE_ELEMENTS", 5 * V)
    read = smoothed_cross_entropy(torch.randint(V, (N,)), smoothing)
    assert torch.autograd.gradcheck(lambda *given: read(HeadInput(*given))[0], made())


@pytest.mark.parametrize("learner", [0, 1, 2], ids=["hidden", "weight", "bias"])
def test_each_input_may_learn_alone(learner: int) -> None:
    given, target = made(), torch.randint(V, (N,))
    alone = [tensor if i == learner else tensor.detach() for i, tensor in enumerate(given)]
    (got,) = torch.autograd.grad(smoothed_cross_entropy(target, 0.1)(HeadInput(*alone))[0], [given[learner]])
    whole = F.cross_entropy(F.linear(*given), target, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(got, torch.autograd.grad(whole, given)[learner])


def test_the_plain_sum_is_only_shown() -> None:
    given = made()
    plain = smoothed_cross_entropy(torch.randint(V, (N,)), 0.1)(HeadInput(*given))[1]
    assert not any(gradient.any() for gradient in torch.autograd.grad(plain, given))


def test_no_gradient_is_made_when_nobody_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    given, target = made(), torch.randint(V, (N,))
    with torch.no_grad():
        monkeypatch.setattr(torch, "mm", None)  # only the gradient needs it
        smoothed, _ = smoothed_cross_entropy(target, 0.1)(HeadInput(*given))
    expected = F.cross_entropy(F.linear(*given), target, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(smoothed, expected.detach())


def test_large_scores_do_not_overflow() -> None:
    hidden, weight = torch.full((3, 2), 300.0), torch.tensor([[1.0, 1.0], [0.0, 0.0], [-1.0, 1.0]])
    hidden.requires_grad_()
    target = torch.tensor([0, 1, 2])
    smoothed, plain = smoothed_cross_entropy(target, 0.1)(HeadInput(hidden, weight))
    expected = F.cross_entropy(hidden.double() @ weight.double().T, target, reduction="sum")
    torch.testing.assert_close(plain.double(), expected, rtol=1e-6, atol=0)
    smoothed.backward()
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()


def copying() -> list[Tensor]:
    """Hidden states, weights, biases; how gladly each position copies; where it looks."""
    gate_N = torch.randn(N, dtype=torch.float64, requires_grad=True)
    scores_NK = torch.randn(N, K, dtype=torch.float64, requires_grad=True)
    return [*made(), gate_N, scores_NK]


def by_definition(given: list[Tensor], tokens_NK: Tensor) -> Tensor:
    """p_NV, word after word."""
    *linear, gate_N, scores_NK = given
    p_NV = []
    for row in range(N):
        written_V, g = F.linear(linear[0][row], *linear[1:]).softmax(-1), gate_N[row].sigmoid()
        looked_K = scores_NK[row].softmax(-1)
        copied = [looked_K[tokens_NK[row] == word].sum() for word in range(V)]
        p_NV.append((1 - g) * written_V + g * torch.stack(copied))
    return torch.stack(p_NV)


@pytest.mark.usefixtures("_height")
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_with_copies_it_equals_the_definition(smoothing: float) -> None:
    """Smoothing spreads over what the vocabulary says: not everything can be copied."""
    given, target, tokens_NK = copying(), torch.randint(V, (N,)), torch.randint(V, (N, K))
    *linear, gate_N, scores_NK = given
    out = HeadInput(*linear, Copied(gate_N, scores_NK.softmax(-1), tokens_NK))
    smoothed, plain = smoothed_cross_entropy(target, smoothing)(out)
    p_NV = by_definition(given, tokens_NK)
    surprise_N = -p_NV.gather(1, target[:, None]).squeeze(1).log()
    spread_N = -F.linear(*linear).log_softmax(-1).mean(-1)
    expected = ((1 - smoothing) * surprise_N + smoothing * spread_N).sum()
    torch.testing.assert_close(smoothed, expected)
    torch.testing.assert_close(plain, surprise_N.sum())
    got = torch.autograd.grad(3 * smoothed, given)
    torch.testing.assert_close(got, torch.autograd.grad(3 * expected, given))
    torch.testing.assert_close(heads.logits(out).exp(), p_NV)
    torch.testing.assert_close(heads.log_probs(target)(out), -surprise_N.float(), check_dtype=False)


def test_what_is_nowhere_in_the_source_is_not_copied() -> None:
    given = copying()
    *linear, gate_N, scores_NK = given
    tokens_NK, absent = torch.zeros(N, K, dtype=torch.long), torch.full((N,), V - 1)
    out = HeadInput(*linear, Copied(gate_N, scores_NK.softmax(-1), tokens_NK))
    smoothed, _ = smoothed_cross_entropy(absent, 0.0)(out)
    gradients = torch.autograd.grad(smoothed, given)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert not gradients[-1].any()
