"""What holds for every model that forecasts."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.tap import Trace, sites, tapped
from regard.config import Config
from regard.fields.axis import Axis
from regard.layers.steps import scaled
from regard.models import Widths
from regard.models.encoders.series import PatchTSTConfig
from regard.models.forecaster import ForecasterConfig
from regard.models.linear_forecaster import DLinearConfig, NLinearConfig
from regard.models.rnn_forecaster import RNNForecasterConfig
from tiny import stirred

LOOK_BACK, HORIZON, CHANNELS, QUANTILES = 31, 11, 3, 2
SIZES: dict[str, Any] = {"d_model": 12, "n_heads": 3, "d_ff": 11, "n_layers": 2, "dropout": 0.0}


def patchtst(**changes: Any) -> ForecasterConfig:
    encoder = PatchTSTConfig(**SIZES | {"patch": 7, "stride": 5, "channels": "independent"} | changes)
    return ForecasterConfig(encoder=encoder)


MODELS: dict[str, Any] = {
    "patchtst": patchtst(),
    "patchtst mixed": patchtst(channels="mixed"),
    "patchtst rotary": patchtst(position="rotary", norm="pre", patch=5, n_heads=2),
    "patchtst stem": patchtst(stem=(3, 5)),
    "nlinear": NLinearConfig(),
    "dlinear": DLinearConfig(kernel=6),
    "rnn": RNNForecasterConfig(patch=5, d_hidden=8, dropout=0.0),
    "lstm": RNNForecasterConfig(patch=4, d_hidden=6, cell="lstm", n_layers=2, dropout=0.0),
}
ALONE = [name for name in MODELS if name != "patchtst mixed"]
"""Models that read every channel alone."""


def widths(n_known: int = 0) -> Widths:
    return Widths(
        {
            "channels": CHANNELS,
            "known": n_known,
            "steps": LOOK_BACK,
            "mean": [1.0, -2.0, 3.0],
            "deviation": [2.0, 1.0, 0.5],
            "known_mean": [0.5] * n_known,
            "known_deviation": [2.0] * n_known,
            "each": False,
        },
        {"horizon": HORIZON, "quantiles": QUANTILES},
    )


def model(name: str, n_known: int = 0) -> nn.Module:
    return stirred(MODELS[name].build(widths(n_known)))


def inputs(n: int = 5, n_known: int = 0) -> dict[str, Tensor]:
    known = {"known": torch.randn(n, LOOK_BACK + HORIZON, n_known)} if n_known else {}
    return {"steps": torch.randn(n, LOOK_BACK, CHANNELS)} | known


def row(batch: dict[str, Tensor], i: int) -> dict[str, Tensor]:
    return {name: tensor[i : i + 1] for name, tensor in batch.items()}


@pytest.mark.parametrize("n_known", [0, 2])
@pytest.mark.parametrize("name", MODELS)
def test_alone_as_in_a_batch(name: str, n_known: int) -> None:
    forecaster, batch = model(name, n_known), inputs(5, n_known)
    together = forecaster(batch)
    assert together.shape == (5, CHANNELS, HORIZON, 1 + QUANTILES)
    for i in range(5):
        assert torch.allclose(together[i], forecaster(row(batch, i))[0], atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_missing_values_give_finite_forecasts_and_gradients(name: str) -> None:
    forecaster, batch = model(name, 2), inputs(4, 2)
    batch["steps"][0, 3:9, 1] = batch["steps"][1, :, 2] = batch["steps"][2, -4:] = batch["steps"][3] = (
        torch.nan
    )
    batch["known"][:, 5] = torch.nan
    forecast = forecaster(batch)
    assert forecast.isfinite().all()
    forecast.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in forecaster.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_a_series_that_is_shifted_has_a_shifted_forecast(name: str) -> None:
    forecaster, batch = model(name), inputs()
    shift_C = torch.tensor([10.0, -20.0, 5.0])
    moved = forecaster({"steps": batch["steps"] + shift_C})
    plain = forecaster(batch)
    scaled_C = shift_C / torch.tensor(widths().input["deviation"])
    is_equal = torch.allclose(moved, plain + scaled_C[None, :, None, None], atol=1e-3)
    assert is_equal == (name != "dlinear")


@pytest.mark.parametrize("name", ALONE)
def test_a_channel_that_is_read_alone_hears_nothing_of_others(name: str) -> None:
    forecaster, batch = model(name), inputs()
    before = forecaster(batch)
    batch["steps"][:, :, 0] = torch.randn(5, LOOK_BACK)
    after = forecaster(batch)
    assert torch.equal(before[:, 1:], after[:, 1:])
    assert not torch.allclose(before[:, 0], after[:, 0])


def test_channels_that_are_mixed_hear_of_one_another() -> None:
    forecaster, batch = model("patchtst mixed"), inputs()
    before = forecaster(batch)
    batch["steps"][:, :, 0] = torch.randn(5, LOOK_BACK)
    assert not torch.allclose(before[:, 1:], forecaster(batch)[:, 1:])


@pytest.mark.parametrize("name", MODELS)
def test_what_is_known_ahead_changes_the_steps_it_is_known_of(name: str) -> None:
    forecaster, batch = model(name, 2), inputs(5, 2)
    before = forecaster(batch)
    batch["known"][:, LOOK_BACK + 6] += 1
    changed = (forecaster(batch) - before).abs().amax((0, 1, 3)) > 1e-6
    if name in ("rnn", "lstm"):  # the decoder reads it with the patch it stands in, and goes on from there
        patch = MODELS[name].patch
        assert changed.nonzero().flatten().tolist() == list(range(6 // patch * patch, HORIZON))
    else:
        assert changed.nonzero().flatten().tolist() == [6]


@pytest.mark.parametrize("name", MODELS)
def test_tapped_as_fused_and_maps_fit_their_axes(name: str) -> None:
    forecaster, batch = model(name), row(inputs(), 0)
    traces = {site: Trace() for site in sites(forecaster)}
    with tapped(forecaster, traces.get):
        tapped_forecast = forecaster(batch)
    assert torch.allclose(tapped_forecast, forecaster(batch), atol=1e-5)
    labels = tuple(str(step) for step in range(LOOK_BACK))
    past = forecaster.get_submodule("").positions(Axis("past", labels, unit="step"))  # type: ignore[operator]
    assert past.spans is not None
    assert (past.spans[0][0], past.spans[-1][1]) == (0, LOOK_BACK)
    for trace in traces.values():
        assert trace.weights_BHQK.shape[-1] == len(past)


CONTRIBUTING = [name for name in MODELS if name not in ("rnn", "lstm")]


@pytest.mark.parametrize("name", CONTRIBUTING)
def test_contributions_add_up_to_the_forecast(name: str) -> None:
    """Beside what does not depend on the past: the bias, and what was taken off before."""
    forecaster: Any = model(name)
    batch = inputs()
    forecast_BCY = forecaster(batch)[..., 0]
    shares_BCYN = forecaster.contributions(batch)
    assert shares_BCYN.shape[3] == len(forecaster.positions(Axis("past", ("",) * LOOK_BACK)))
    if name.startswith("patchtst"):
        _, instance = forecaster._read(batch)
        bias = forecaster.head.bias.view(-1, HORIZON, 1 + QUANTILES)[..., 0]
        added = (shares_BCYN.sum(-1) + bias)[..., None]
        assert torch.allclose(instance.restore(added)[..., 0], forecast_BCY, atol=1e-4)
        return
    *_, added_BC1 = forecaster._parts(scaled(batch["steps"], forecaster.mean, forecaster.deviation))
    bias_Y = sum(part.bias for part in forecaster.maps).view(HORIZON, -1)[:, 0]
    assert torch.allclose(shares_BCYN.sum(-1) + bias_Y + added_BC1, forecast_BCY, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_is_the_same(name: str) -> None:
    forecaster, batch = model(name, 2), inputs(5, 2)
    config: Config = type(MODELS[name]).model_validate(MODELS[name].model_dump(mode="json"))
    again: Any = config
    again = again.build(widths(2)).eval()
    again.load_state_dict(forecaster.state_dict())
    assert torch.equal(again(batch), forecaster(batch))
    assert str(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_a_restless_past_has_a_wide_band(name: str) -> None:
    """The deviation of a window is a scale of its band, for linear models too."""
    forecaster, batch = model(name), inputs()
    centre_C = torch.tensor(widths().input["mean"])
    calm = forecaster({"steps": centre_C + batch["steps"] - batch["steps"].mean(1, keepdim=True)})
    wild = forecaster({"steps": centre_C + 10 * (batch["steps"] - batch["steps"].mean(1, keepdim=True))})
    assert (wild[..., 1] - wild[..., 2]).abs().mean() > 5 * (calm[..., 1] - calm[..., 2]).abs().mean()
