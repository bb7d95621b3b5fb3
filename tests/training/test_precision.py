"""Products in bfloat16 and compiled models: another way to the same training."""

from collections.abc import Callable

import pytest
import torch

from oracle.made import Made
from regard.training import state
from regard.training.config import TrainConfig
from regard.training.events import Step
from regard.training.loop import run
from regard.training.precision import MIN_WIDTH, uses_bfloat16
from regard.training.state import Training

Make = Callable[..., Training]


def losses(training: Training) -> list[float]:
    return [event.loss for event in run(training) if isinstance(event, Step)]


def test_products_in_bfloat16_learn_the_same(make: Make) -> None:
    training = make("narrow", max_steps=40, precision="bfloat16", dropout=0.0)
    narrow, single = losses(training), losses(make("single", max_steps=40, dropout=0.0))
    assert narrow != single
    assert narrow == pytest.approx(single, rel=0.1)
    assert all(parameter.dtype == torch.float32 for parameter in training.model.parameters())


def test_only_products_are_narrow(make: Make) -> None:
    training = make(max_steps=1, precision="bfloat16")
    with Made() as made:
        list(run(training))
    assert made.narrow & {"aten.addmm.default", "aten.mm.default"}
    assert not made.narrow & {"aten.exp_.default", "aten.log.default", "aten.native_layer_norm.default"}


@pytest.mark.parametrize(
    ("precision", "d_model", "units", "narrow"),
    [
        ("auto", MIN_WIDTH, True, True),
        ("auto", MIN_WIDTH - 1, True, False),
        ("auto", MIN_WIDTH, False, False),
        ("single", MIN_WIDTH, True, False),
        ("bfloat16", 8, False, True),
    ],
)
def test_the_machine_and_the_width_decide_unless_told(
    precision: str, d_model: int, units: bool, narrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.training.precision.has_bfloat16", lambda device: units)
    plan = TrainConfig.model_validate({"max_steps": 1, "precision": precision})
    assert uses_bfloat16(plan, torch.device("cpu"), d_model) == narrow


def test_a_small_model_computes_in_single_precision(make: Make) -> None:
    assert losses(make("auto", max_steps=4)) == losses(make("single", max_steps=4, precision="single"))


def test_muon_moves_in_bfloat16_too(make: Make) -> None:
    training = make(max_steps=2, optimizer="muon", precision="bfloat16")
    with Made() as made:
        list(run(training))
    assert "aten.baddbmm.default" in made.narrow


@pytest.mark.filterwarnings("ignore")  # those of torch about itself
def test_a_compiled_model_takes_the_same_steps(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the backend that compiles nothing: it is the code path that is tried here, not a compiler."""
    monkeypatch.setattr(state, "COMPILER", "eager")
    compiled = make("compiled", max_steps=2, compile=True, dropout=0.0)
    plain = make("plain", max_steps=2, dropout=0.0)
    assert losses(compiled) == pytest.approx(losses(plain), rel=1e-5)
    assert compiled.model.state_dict().keys() == plain.model.state_dict().keys()
