"""What comes next is said from the past alone, alike in any batch, with any padding, observed or not."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.tap import Trace, sites, tapped
from regard.models import BERT4RecConfig, GRU4RecConfig, SASRecConfig
from regard.models.widths import Widths
from tiny import stirred

N_ITEMS = 19
WIDTHS = Widths({"items": N_ITEMS}, {"items": N_ITEMS})
SMALL: dict[str, Any] = {"d_model": 8, "n_heads": 2, "d_ff": 11, "n_layers": 2, "max_positions": 13}
CAUSAL = {
    "sasrec": SASRecConfig(**SMALL),
    "sasrec-rotary": SASRecConfig(**SMALL, position="rotary", tie_embeddings=False),
    "sasrec-times": SASRecConfig(**SMALL, time_gaps=True),
    "gru4rec": GRU4RecConfig(d_model=8, d_hidden=7, n_layers=2, tie_embeddings=False),
    "gru4rec-attention": GRU4RecConfig(d_model=8, d_hidden=7, attention=True),
}
BOTH_SIDES = {"bert4rec": BERT4RecConfig(**SMALL), "bert4rec-times": BERT4RecConfig(**SMALL, time_gaps=True)}
EVERY = CAUSAL | BOTH_SIDES
LENGTHS = (7, 2, 5, 1)

each = pytest.mark.parametrize("config", EVERY.values(), ids=EVERY.keys())


def batch(*, width: int = max(LENGTHS), rubbish: int = 0) -> dict[str, Tensor]:
    """Histories of these lengths, the last with a hidden item; padded with any number up to a width."""
    generator = torch.Generator().manual_seed(3)
    items_BT = torch.randint(N_ITEMS, (len(LENGTHS), max(LENGTHS)), generator=generator)
    times_BT = torch.randint(1 << 30, items_BT.shape, generator=generator).double().cumsum(1)
    lengths_B = torch.tensor(LENGTHS)
    padded = {
        "items": torch.full((len(LENGTHS), width), rubbish),
        "times": torch.full((len(LENGTHS), width), 1e9 * rubbish, dtype=torch.float64),
        "lengths": lengths_B,
    }
    padded["items"][:, : max(LENGTHS)], padded["times"][:, : max(LENGTHS)] = items_BT, times_BT
    behind_BT = torch.arange(width) >= lengths_B[:, None]
    padded["items"][behind_BT], padded["times"][behind_BT] = rubbish, 1e9 * rubbish
    return padded


def last(inputs: dict[str, Tensor]) -> Tensor:
    rows, width = inputs["items"].shape
    return torch.arange(rows) * width + inputs["lengths"] - 1


def made(config: Any) -> nn.Module:
    return stirred(config.build(WIDTHS)).eval()


@each
@torch.no_grad()
def test_padding_changes_nothing(config: Any) -> None:
    model = made(config)
    plain, padded = batch(), batch(width=11, rubbish=17)
    torch.testing.assert_close(model(padded, last(padded)), model(plain, last(plain)), rtol=1e-5, atol=1e-5)


@each
@torch.no_grad()
def test_alone_as_in_a_batch(config: Any) -> None:
    model, inputs = made(config), batch()
    together_BV = model(inputs, last(inputs))
    for row, length in enumerate(LENGTHS):
        alone = {name: inputs[name][row : row + 1, :length] for name in ("items", "times")}
        alone["lengths"] = inputs["lengths"][row : row + 1]
        single_1V = model(alone, last(alone))
        torch.testing.assert_close(single_1V[0], together_BV[row], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("config", CAUSAL.values(), ids=CAUSAL.keys())
@torch.no_grad()
def test_the_future_does_not_change_the_past(config: Any) -> None:
    model, inputs = made(config), batch()
    places = torch.arange(max(LENGTHS))
    before_TV = model(inputs, places)
    for place in range(1, max(LENGTHS)):
        other = {name: tensor.clone() for name, tensor in inputs.items()}
        other["items"][0, place] = (other["items"][0, place] + 1) % N_ITEMS
        other["times"][0, place:] += 1e6
        after_TV = model(other, places)
        torch.testing.assert_close(after_TV[:place], before_TV[:place], rtol=1e-5, atol=1e-5)
        assert not torch.allclose(after_TV[place], before_TV[place], atol=1e-4)


@pytest.mark.parametrize("config", BOTH_SIDES.values(), ids=BOTH_SIDES.keys())
@torch.no_grad()
def test_both_sides_are_seen(config: Any) -> None:
    model, inputs = made(config), batch()
    inputs["items"][0, 3] = N_ITEMS
    hidden = torch.tensor([3])
    before_1V = model(inputs, hidden)
    for place in (0, 6):
        other = {name: tensor.clone() for name, tensor in inputs.items()}
        other["items"][0, place] = (other["items"][0, place] + 1) % N_ITEMS
        assert not torch.allclose(model(other, hidden), before_1V, atol=1e-4)


@pytest.mark.parametrize("name", ["sasrec-times", "bert4rec-times"])
@torch.no_grad()
def test_times_count_only_by_their_distances(name: str) -> None:
    model, inputs = made(EVERY[name]), batch()
    before_BV = model(inputs, last(inputs))
    later = inputs | {"times": inputs["times"] + 86_400}
    torch.testing.assert_close(model(later, last(later)), before_BV, rtol=1e-5, atol=1e-5)
    slower = inputs | {"times": 100 * inputs["times"]}
    assert not torch.allclose(model(slower, last(slower))[0], before_BV[0], atol=1e-4)


@each
@torch.no_grad()
def test_observed_as_unobserved(config: Any) -> None:
    model, inputs = made(config), batch()
    traces = {name: Trace() for name in sites(model)}
    with tapped(model, traces.get):
        observed_BV = model(inputs, last(inputs))
    torch.testing.assert_close(observed_BV, model(inputs, last(inputs)), rtol=1e-5, atol=1e-5)
    for trace in traces.values():
        torch.testing.assert_close(
            trace.weights_BHQK[0].sum(-1), torch.ones_like(trace.weights_BHQK[0].sum(-1))
        )


@each
def test_all_that_is_learnt_gets_a_gradient(config: Any) -> None:
    model = config.build(WIDTHS)
    inputs = batch()
    if config.kind == "bert4rec":
        inputs["items"][0, 3] = N_ITEMS
    model(inputs, torch.arange(max(LENGTHS))).logsumexp(1).sum().backward()
    assert [name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()] == []
