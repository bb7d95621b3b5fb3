"""A step that is written out gives what the modules give; what it cannot do it leaves to them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention import Trace, tapped
from regard.layers.cpu.fused_step import FIRST_POSITIONS
from regard.layers.inputs import tokens
from regard.linear import Linear
from regard.models import Transformer, TransformerConfig, Widths

BEAMS = 3


def translator(**given: Any) -> Transformer:
    sizes = {"d_model": 16, "n_heads": 4, "d_ff": 24, "n_encoder_layers": 1, "n_decoder_layers": 2}
    model = TransformerConfig(**(sizes | given)).build(Widths({"vocab": 31}, {"vocab": 31}, shared=True))
    return model.eval()


def steps(model: Transformer, *, fused_step: bool, lengths: tuple[int, ...], n: int = 5) -> Iterator[Tensor]:
    """Logits of each step of beams that are shuffled on the way and lose a source."""
    generator = torch.Generator().manual_seed(1)
    source_BK = torch.randint(4, 31, (len(lengths), max(lengths)), generator=generator)
    state = model.start(tokens(source_BK, torch.tensor(lengths)))
    if not fused_step:
        state = replace(state, fused_step=None)
    sources = torch.arange(len(lengths))
    state = model.select(state, sources.repeat_interleave(BEAMS))
    for number in range(n):
        last_N = torch.randint(4, 31, (len(sources) * BEAMS,), generator=generator)
        logits_NV, state = model.step(last_N, state)
        yield logits_NV
        rows_N = torch.randint(0, BEAMS, (len(sources), BEAMS), generator=generator)
        rows_N = rows_N + torch.arange(len(sources))[:, None] * BEAMS
        if number == 1:
            sources = sources[1:]
            state = model.select(state, rows_N[1:].flatten(), torch.arange(1, len(lengths)))
        else:
            state = model.select(state, rows_N.flatten())


KINDS = [
    {"norm": norm, "activation": activation, "position": position}
    for norm, activation, position in product(
        ("pre", "post"), ("relu", "gelu_tanh", "swiglu"), ("sinusoidal", "learned", "none")
    )
] + [{"bias": False}, {"n_kv_heads": 2}, {"n_kv_heads": 1, "bias": False, "norm": "pre"}]


@pytest.mark.parametrize("lengths", [(6, 4, 1), (5, 5)], ids=["padded", "full"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
@torch.inference_mode()
def test_the_same_numbers_as_the_modules(kind: dict[str, Any], lengths: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = translator(**kind)
    assert model.start(tokens(torch.tensor([[5]]), torch.tensor([1]))).fused_step is not None
    for ours, theirs in zip(
        steps(model, fused_step=True, lengths=lengths),
        steps(model, fused_step=False, lengths=lengths),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_positions_go_on_beyond_those_made_at_first() -> None:
    model = translator()
    pairs = zip(
        steps(model, fused_step=True, lengths=(3, 2), n=FIRST_POSITIONS + 3),
        steps(model, fused_step=False, lengths=(3, 2), n=FIRST_POSITIONS + 3),
        strict=True,
    )
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("position", ["rotary", "relative", "alibi"])
def test_positions_inside_attention_are_left_to_the_modules(position: str) -> None:
    assert _start(translator(position=position)).fused_step is None


def test_a_tap_sees_every_step() -> None:
    model, trace = translator(), Trace()
    with tapped(model, lambda name: trace if name == "decoder.layers.0.cross" else None):
        state = _start(model)
        for _ in range(3):
            _, state = model.step(torch.tensor([5]), state)
    assert trace.weights_BHQK.shape[2] == 3


def test_a_tap_may_come_and_go_between_steps() -> None:
    model, trace = translator(), Trace()
    state = expected = _start(model)
    for number in range(4):
        looking = trace if number in (1, 2) else None
        with tapped(model, lambda name, tap=looking: tap if name == "decoder.layers.1.self" else None):
            logits, state = model.step(torch.tensor([5]), state)
        told, expected = model.step(torch.tensor([5]), expected)
        torch.testing.assert_close(logits, told, atol=1e-5, rtol=1e-5)
    assert [weights.shape[-1] for weights in trace.calls] == [2, 3]


def test_looking_in_one_thread_is_not_looking_in_another() -> None:
    model, trace = translator(), Trace()
    with tapped(model, lambda name: trace), ThreadPoolExecutor(1) as other:
        other.submit(lambda: model.step(torch.tensor([5]), _start(model))).result()
    assert trace.calls == []


def test_hooks_are_called() -> None:
    model, seen = translator(), []
    linear = model.decoder.get_submodule("layers.1.self.v")
    linear.register_forward_hook(lambda module, given, out: seen.append(out))
    model.step(torch.tensor([5]), _start(model))
    assert len(seen) == 1


class Doubled(Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class Wrapped(nn.Module):
    """As adapters wrap: what is inside has the weights."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *given: Any, **named: Any) -> Any:
        return self.inner(*given, **named)


CHANGES: dict[str, Any] = {
    "a kind of Linear": ("layers.1.cross.o", lambda old: Doubled(16, 16)),
    "wrapped": ("layers.0.self.q", Wrapped),
    "a wrapped layer": ("layers.0", Wrapped),
    "no norm": ("layers.0.ff_norm", lambda old: nn.Identity()),
    "another norm": ("layers.1.self_norm", lambda old: nn.RMSNorm(16)),
}


@pytest.mark.parametrize(("place", "change"), CHANGES.values(), ids=CHANGES)
def test_modules_that_were_changed_are_used(place: str, change: Any) -> None:
    model = translator()
    parent, _, name = place.rpartition(".")
    setattr(model.decoder.get_submodule(parent), name, change(model.decoder.get_submodule(place)))
    assert _start(model).fused_step is None


def test_a_forward_put_in_the_place_of_another_is_used() -> None:
    model = translator()
    feed_forward = model.decoder.get_submodule("layers.0.ff")
    feed_forward.forward = torch.zeros_like
    assert _start(model).fused_step is None


def test_weights_that_changed_since_are_the_new_ones() -> None:
    model = translator()
    before, _ = model.step(torch.tensor([5]), _start(model))
    with torch.no_grad():
        for parameter in model.decoder.parameters():
            parameter.data.mul_(0.5)
    after, _ = model.step(torch.tensor([5]), _start(model))
    expected, _ = model.step(torch.tensor([5]), replace(_start(model), fused_step=None))
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, expected)


def test_dropout_while_training() -> None:
    assert _start(translator(dropout=0.5).train()).fused_step is None


def _start(model: Transformer) -> Any:
    return model.start(tokens(torch.tensor([[5, 6, 7]]), torch.tensor([3])))
