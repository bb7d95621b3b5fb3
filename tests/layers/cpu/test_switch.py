"""One switch: with it off no shadow kernel runs, and the textbook path gives the same numbers."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.attention import attend
from regard.attention.cpu import small_kernel, unpadded
from regard.layers import cpu
from regard.layers.cpu import cross_entropy, dropout, fused_step, output_projection
from regard.layers.dropout import Dropout
from regard.layers.heads import smoothed_cross_entropy
from regard.models import Transformer
from tiny import DIMS, inputs, stirred, transformer


def translator() -> Transformer:
    model = stirred(transformer().build(DIMS))
    assert isinstance(model, Transformer)
    return model


def attending() -> Tensor:
    return attend(*torch.randn(3, 140, 2, 11, 5))


def training() -> Tensor:
    given = inputs()
    labels_N = given.target_BT.flatten()
    return translator().train()(*given.pairs, None, smoothed_cross_entropy(labels_N, 0.1))


@torch.inference_mode()
def stepping() -> Tensor:
    model, given = translator(), inputs()
    return model.step(given.target_BT[:, 0], model.start(given.sources))[0]


KERNELS: dict[str, tuple[Any, str, Callable[[], Tensor]]] = {
    "small kernel": (small_kernel._AttendByHead, "forward", attending),
    "unpadded": (unpadded.Unpadded, "gather", training),
    "fused step": (fused_step.FusedStep, "__call__", stepping),
    "output projection": (output_projection.OutputProjection, "_can_reorder", stepping),
    "cross entropy": (cross_entropy._FusedCrossEntropy, "forward", training),
    "dropout": (dropout._Drop, "forward", lambda: Dropout(0.5)(torch.ones(7, 3))),
}


@pytest.fixture
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One entry for each call of the kernel: whether it did the work."""
    owner, name, _ = KERNELS[request.param]
    kernel, noted = getattr(owner, name), []

    def call(*given: Any) -> Any:
        out = kernel(*given)
        noted.append(out is not False)
        return out

    monkeypatch.setattr(owner, name, staticmethod(call) if name == "forward" else call)
    return noted


@pytest.mark.parametrize("off", [False, True], ids=["on", "off"])
@pytest.mark.parametrize(("calls", "kind"), [(kind, kind) for kind in KERNELS], indirect=["calls"])
def test_a_kernel_runs_exactly_when_it_is_on(calls: list[bool], kind: str, off: bool) -> None:
    with cpu.disabled() if off else nullcontext():
        KERNELS[kind][2]()
    assert any(calls) != off


@pytest.mark.parametrize("kind", [kind for kind in KERNELS if kind != "dropout"])
def test_the_textbook_path_gives_the_same_numbers(kind: str) -> None:
    def run() -> Tensor:
        torch.manual_seed(5)
        return KERNELS[kind][2]()

    fast = run()
    with cpu.disabled():
        torch.testing.assert_close(run(), fast, rtol=1e-5, atol=1e-5)


def test_the_switch_goes_back_even_after_an_error() -> None:
    def fail() -> None:
        with cpu.disabled(), cpu.disabled():
            assert not cpu.enabled()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert cpu.enabled()
