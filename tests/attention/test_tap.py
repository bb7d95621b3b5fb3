"""Taps: what is seen, what is changed, and that everything is afterwards as before."""

import pytest
import torch
from torch import Tensor, nn

from oracle.made import Made
from regard.attention import Attention, Replace, Trace, causal, padding, sites, tapped
from regard.linear import Linear

B, T, H, D = 3, 11, 2, 14


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self = Attention(D, n_heads=H)
        self.cross = Attention(D, n_heads=H)
        self.out = Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self(x, mask=causal())
        x = x + self.cross(x, self.cross.project_kv(x), mask=padding(torch.tensor([11, 7, 5])))
        return self.out(x)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


NAMES = ["layers.0.self", "layers.0.cross", "layers.1.self", "layers.1.cross"]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def x() -> Tensor:
    return torch.randn(B, T, D)


def uniform(weights_BHQK: Tensor, offset: int) -> Tensor:
    return torch.full_like(weights_BHQK, 1 / weights_BHQK.shape[-1])


def test_sites_are_called_by_their_path(model: Model) -> None:
    assert list(sites(model)) == NAMES
    assert all(model.get_submodule(name) is site for name, site in sites(model).items())
    assert list(sites(Attention(D))) == [""]


def test_observing_changes_nothing(model: Model, x: Tensor) -> None:
    untapped = model(x)
    traces = {name: Trace() for name in sites(model)}
    with tapped(model, traces.get):
        seen = model(x)
    torch.testing.assert_close(seen, untapped, rtol=1e-5, atol=1e-5)
    for name, trace in traces.items():
        weights_BHQK = trace.weights_BHQK
        assert weights_BHQK.shape == (B, H, T, T)
        assert not weights_BHQK.requires_grad
        torch.testing.assert_close(weights_BHQK.sum(-1), torch.ones(B, H, T))
        assert torch.equal(weights_BHQK.triu(1).any(), torch.tensor("cross" in name))


def test_replacing_changes_the_output(model: Model, x: Tensor) -> None:
    untapped = model(x)
    with tapped(model, lambda name: Replace(uniform) if name == "layers.1.cross" else None):
        replaced = model(x)
    assert not torch.allclose(replaced, untapped, atol=1e-3)


def test_uniform_weights_give_the_mean_of_the_values(x: Tensor) -> None:
    attention = Attention(D, n_heads=H, project="qkv")
    with tapped(attention, lambda name: Replace(uniform)):
        out_BTD = attention(x)
    assert attention.v is not None
    torch.testing.assert_close(out_BTD, attention.v(x).mean(1, keepdim=True).expand(-1, T, -1))


def test_other_sites_stay_fused(model: Model, x: Tensor) -> None:
    def fused_and_explicit(names: list[str]) -> tuple[int, int]:
        with Made() as made, tapped(model, lambda name: Trace() if name in names else None):
            model(x)
        return made.count("flash_attention"), made.count("softmax")

    assert fused_and_explicit([]) == (4, 0)
    assert fused_and_explicit(["layers.1.self"]) == (3, 1)
    assert fused_and_explicit(NAMES) == (0, 4)


def test_leaving_restores_also_after_an_error(model: Model, x: Tensor) -> None:
    untapped = model(x)
    with tapped(model, lambda name: Replace(uniform)):
        model(x)
    assert torch.equal(model(x), untapped)
    with pytest.raises(RuntimeError, match="in the middle"), tapped(model, lambda name: Replace(uniform)):
        raise RuntimeError("in the middle")
    assert torch.equal(model(x), untapped)
    assert all(site.tap is None for site in sites(model).values())


def test_a_failing_pick_sets_nothing(model: Model) -> None:
    def pick(name: str) -> Trace:
        if name == "layers.1.self":
            raise KeyError(name)
        return Trace()

    with pytest.raises(KeyError, match=r"layers\.1\.self"), tapped(model, pick):
        pass
    assert all(site.tap is None for site in sites(model).values())


def test_nested_taps_leave_the_other_sites_to_the_outer(model: Model, x: Tensor) -> None:
    outer = {name: Trace() for name in NAMES}
    inner = Trace()
    with tapped(model, outer.get):
        with tapped(model, {"layers.0.self": inner}.get):
            model(x)
        assert [len(outer[name].calls) for name in NAMES] == [0, 1, 1, 1]
        assert len(inner.calls) == 1
        model(x)
    assert [len(outer[name].calls) for name in NAMES] == [1, 2, 2, 2]
    assert len(inner.calls) == 1


def test_repeated_calls_follow_one_another_on_the_query_axis(x: Tensor) -> None:
    attention, queries = Attention(D, n_heads=H), torch.randn(B, 5, D)
    memory = attention.project_kv(x)
    whole, steps = Trace(), Trace()
    with tapped(attention, lambda name: whole):
        attention(queries, memory)
    with tapped(attention, lambda name: steps):
        for query in queries.split(1, dim=1):
            attention(query, memory)
    assert len(steps.calls) == 5
    torch.testing.assert_close(steps.weights_BHQK, whole.weights_BHQK)


def test_replace_is_told_how_many_queries_came_before(x: Tensor) -> None:
    attention, offsets = Attention(D, n_heads=H), []

    def change(weights_BHQK: Tensor, offset: int) -> Tensor:
        offsets.append(offset)
        return weights_BHQK

    memory, tap = attention.project_kv(x), Replace(change)
    with tapped(attention, lambda name: tap):
        for query in torch.randn(B, 10, D).split([1, 2, 7], dim=1):
            attention(query, memory)
    assert offsets == [0, 1, 3]


def test_a_tap_sees_one_value_per_query_head(x: Tensor) -> None:
    shapes = []

    def tap(weights_BHQK: Tensor, v_BHKW: Tensor) -> Tensor:
        shapes.append((weights_BHQK.shape, v_BHKW.shape))
        return weights_BHQK

    attention = Attention(D, n_heads=2, n_kv_heads=1, d_value=5)
    with tapped(attention, lambda name: tap):
        attention(x)
    assert shapes == [((B, 2, T, T), (B, 2, T, 5))]


def test_gradients_flow_through_an_observed_site(model: Model, x: Tensor) -> None:
    model.double()
    x = x.double()
    gradients = []
    for pick in (lambda name: None, lambda name: Trace()):
        with tapped(model, pick):
            gradients.append(torch.autograd.grad(model(x).square().sum(), list(model.parameters())))
    for fused, explicit in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, explicit)
