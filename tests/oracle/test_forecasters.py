"""Forecasters beside their definitions, and PatchTST beside that of Hugging Face."""

from typing import Any

import torch
from torch import Tensor
from transformers import PatchTSTConfig as TheirConfig
from transformers import PatchTSTForPrediction

from regard.layers.steps import EPS, Instance, last_known, n_patches, patches
from regard.models import Widths
from regard.models.encoders.series import PatchTSTConfig
from regard.models.forecaster import Forecaster, ForecasterConfig
from regard.models.linear_forecaster import DLinearConfig, NLinearConfig
from regard.models.rnn_forecaster import RNNForecaster, RNNForecasterConfig
from tiny import stirred

LOOK_BACK, HORIZON, CHANNELS = 37, 11, 3
D, HEADS, FF, LAYERS, PATCH, STRIDE = 12, 3, 17, 2, 7, 5
ONE_SCALE = {"mean": [0.0] * CHANNELS, "deviation": [1.0] * CHANNELS, "each": False}
KNOWN: dict[str, Any] = {"known": 0, "known_mean": [], "known_deviation": []}
WIDTHS = Widths(
    {"channels": CHANNELS, "steps": LOOK_BACK, **ONE_SCALE, **KNOWN}, {"horizon": HORIZON, "quantiles": 0}
)
NAMES = {
    "self_attn.q_proj": "self.q",
    "self_attn.k_proj": "self.k",
    "self_attn.v_proj": "self.v",
    "self_attn.out_proj": "self.o",
    "norm_sublayer1": "self_norm",
    "norm_sublayer3": "ff_norm",
    "ff.0": "ff.inner",
    "ff.3": "ff.outer",
}
"""Parts of a layer there and here."""


def theirs() -> PatchTSTForPrediction:
    config = TheirConfig(
        num_input_channels=CHANNELS, context_length=LOOK_BACK, prediction_length=HORIZON, patch_length=PATCH,
        patch_stride=STRIDE, d_model=D, num_attention_heads=HEADS, ffn_dim=FF, num_hidden_layers=LAYERS,
        norm_type="layernorm", norm_eps=EPS, pre_norm=False, activation_function="gelu", scaling="std",
        channel_attention=False, positional_encoding_type="random", share_projection=True, dropout=0.0,
        attention_dropout=0.0, ff_dropout=0.0, path_dropout=0.0, positional_dropout=0.0, head_dropout=0.0,
        pooling_type=None, loss="mse", attn_implementation="eager",
    )  # fmt: skip
    return stirred(PatchTSTForPrediction(config))  # type: ignore[return-value]


def test_patchtst_gives_what_that_of_hugging_face_gives() -> None:
    other = theirs()
    weights = dict(other.state_dict())
    encoder = PatchTSTConfig(
        patch=PATCH, stride=STRIDE, channels="independent", d_model=D, n_heads=HEADS, d_ff=FF,
        n_layers=LAYERS, dropout=0.0,
    )  # fmt: skip
    ours = Forecaster(ForecasterConfig(encoder=encoder), WIDTHS).eval()
    there = "model.encoder."
    mapped: dict[str, Tensor] = {
        "encoder.project.weight": weights[f"{there}embedder.input_embedding.weight"],
        "encoder.project.bias": weights[f"{there}embedder.input_embedding.bias"],
        "encoder.position.weight": weights[f"{there}positional_encoder.position_enc"],
        "head.weight": weights["head.projection.weight"],
        "head.bias": weights["head.projection.bias"],
    }
    for layer in range(LAYERS):
        for their_name, our_name in NAMES.items():
            for kind in ("weight", "bias"):
                found = f"{there}layers.{layer}.{their_name}"
                found = f"{found}.{kind}" if f"{found}.{kind}" in weights else f"{found}.norm.{kind}"
                if found not in weights:
                    found = f"{there}layers.{layer}.{their_name}.batchnorm.{kind}"
                mapped[f"encoder.stack.layers.{layer}.{our_name}.{kind}"] = weights[found]
    ours.load_state_dict(mapped)
    steps = 3 * torch.randn(5, LOOK_BACK, CHANNELS) + 2
    with torch.no_grad():
        expected = other(past_values=steps).prediction_outputs.transpose(1, 2)
        assert torch.allclose(ours({"steps": steps})[..., 0], expected, atol=1e-4)


def test_nlinear_is_its_definition() -> None:
    model: Any = stirred(NLinearConfig().build(WIDTHS))
    steps = torch.randn(4, LOOK_BACK, CHANNELS)
    weight, bias = model.maps[0].weight, model.maps[0].bias
    for b in range(4):
        for c in range(CHANNELS):
            series = steps[b, :, c]
            expected = weight @ (series - series[-1]) + bias + series[-1]
            assert torch.allclose(model({"steps": steps})[b, c, :, 0], expected, atol=1e-4)


def test_dlinear_is_its_definition() -> None:
    kernel = 5
    model: Any = stirred(DLinearConfig(kernel=kernel).build(WIDTHS))
    steps = torch.randn(2, LOOK_BACK, CHANNELS)
    trend_map, rest_map = model.maps
    for c in range(CHANNELS):
        series = steps[1, :, c]
        around = torch.cat([series[:1].expand(kernel // 2), series, series[-1:].expand(kernel // 2)])
        trend = torch.stack([around[t : t + kernel].mean() for t in range(LOOK_BACK)])
        expected = trend_map(trend) + rest_map(series - trend)
        assert torch.allclose(model({"steps": steps})[1, c, :, 0], expected, atol=1e-4)


def test_the_rnn_is_its_definition() -> None:
    """One channel at a time, one patch at a time, the attention written out."""
    patch = 5
    config = RNNForecasterConfig(patch=patch, d_hidden=8, cell="gru", dropout=0.0)
    model = stirred(config.build(WIDTHS))
    assert isinstance(model, RNNForecaster)
    steps = torch.randn(1, LOOK_BACK, CHANNELS)
    series = steps[0, :, 1]
    mean, deviation = series.mean(), (series.var(unbiased=False) + EPS).sqrt()
    padded = torch.cat([torch.zeros(-LOOK_BACK % patch), (series - mean) / deviation])
    read = padded.view(-1, patch)
    states, final = model.encoder.network(model.enter(read)[None])
    h = torch.tanh(model.bridge(final.transpose(0, 1).flatten(1)))
    last, written = read[-1:], []
    attention: Any = model.attention
    for _ in range(-(-HORIZON // patch)):
        keys, query = attention.k(states[0]), attention.q(h)
        weights = torch.softmax(torch.tanh(keys + query) @ attention.score.v_HE[0], 0)
        context = (weights[:, None] * states[0]).sum(0, keepdim=True)
        gates = model.cells.enter(last) + model.cells.extra(context)  # type: ignore[misc]
        (h,) = model.cells.cells[0](gates, (h,))
        last = model.output(torch.cat([h, context], 1))
        written.append(last[0])
    expected = torch.cat(written)[:HORIZON] * deviation + mean
    assert torch.allclose(model({"steps": steps})[0, 1, :, 0], expected, atol=1e-4)


def test_patches_cover_all_steps() -> None:
    for n in range(1, 40):
        for patch, stride in ((1, 1), (7, 5), (5, 7), (8, 4)):
            steps = torch.arange(1.0, n + 1)[None, None].repeat(1, 2, 1)
            found = patches(steps, patch, stride)
            assert found.shape == (1, n_patches(n, patch, stride), 2 * patch)
            for number, both in enumerate(found[0]):
                begin = number * stride
                row = [begin + i + 1 if begin + i < n else 0 for i in range(patch)]
                assert both.tolist() == 2 * row
            assert (found.shape[1] - 1) * stride + patch >= n


def test_instances_and_last_values_know_nothing_of_what_is_missing() -> None:
    steps = torch.randn(3, 9, 2)
    steps[0, 2:5, 0] = steps[1, -2:, 1] = steps[2, :, 0] = torch.nan
    instance, last = Instance.of(steps), last_known(steps)
    for b in range(3):
        for c in range(2):
            known = steps[b, ~steps[b, :, c].isnan(), c]
            if not len(known):
                assert (float(instance.mean_B1C[b, 0, c]), float(last[b, 0, c])) == (0, 0)
                continue
            assert torch.isclose(instance.mean_B1C[b, 0, c], known.mean())
            deviation = (known.var(unbiased=False) + EPS).sqrt()
            assert torch.isclose(instance.deviation_B1C[b, 0, c], deviation)
            assert last[b, 0, c] == known[-1]
    assert not instance.normalise(steps)[2, :, 0].any()
