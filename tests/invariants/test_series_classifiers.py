"""What holds for every model that reads a series as a whole."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.tap import Trace, sites, tapped
from regard.models import Widths
from regard.models.classifier import ClassifierConfig
from regard.models.encoders.series import PatchTSTConfig
from tiny import stirred

STEPS, CHANNELS, CLASSES = 31, 3, 5
SIZES: dict[str, Any] = {"d_model": 12, "n_heads": 3, "d_ff": 11, "n_layers": 2, "patch": 7, "stride": 5}
MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stem": {"stem": (5, 3)},
    "rotary": {"position": "rotary", "norm": "pre", "n_heads": 2},
    "wide steps": {"patch": 3, "stride": 4, "stem": (3,)},
}
LENGTHS = (31, 7, 20, 1)


def model(name: str, pooling: Any = "attention") -> nn.Module:
    encoder = PatchTSTConfig(**SIZES | MODELS[name])
    width = {"channels": CHANNELS, "known": 0, "steps": STEPS, "mean": [1.0, -2.0, 3.0]}
    width |= {"deviation": [2.0, 1.0, 0.5], "known_mean": [], "known_deviation": [], "each": False}
    config = ClassifierConfig(encoder=encoder, pooling=pooling, dropout=0.0)
    return stirred(config.build(Widths(width, {"classes": CLASSES})))


def inputs() -> dict[str, Tensor]:
    steps_BTC = torch.randn(len(LENGTHS), STEPS, CHANNELS)
    return {"steps": steps_BTC, "lengths": torch.tensor(LENGTHS)}


@pytest.mark.parametrize("pooling", ["attention", "mean"])
@pytest.mark.parametrize("name", MODELS)
def test_alone_as_in_a_batch_and_whatever_stands_behind_the_end(name: str, pooling: str) -> None:
    classifier, batch = model(name, pooling), inputs()
    together = classifier(batch)
    for i, length in enumerate(LENGTHS):
        alone = {"steps": batch["steps"][i : i + 1, :length], "lengths": torch.tensor([length])}
        assert torch.allclose(classifier(alone)[0], together[i], atol=1e-4)
        batch["steps"][i, length:] = 1e6
    assert torch.equal(classifier(batch), together)


@pytest.mark.parametrize("name", MODELS)
def test_tapped_as_fused(name: str) -> None:
    classifier, batch = model(name), inputs()
    traces = {site: Trace() for site in sites(classifier)}
    with tapped(classifier, traces.get):
        together = classifier(batch)
    assert torch.allclose(classifier(batch), together, atol=1e-5)
    assert traces


def test_kernels_stand_in_the_middle() -> None:
    with pytest.raises(ValueError, match="kernels are odd numbers, as a step stands in the middle"):
        PatchTSTConfig(stem=(4,))
