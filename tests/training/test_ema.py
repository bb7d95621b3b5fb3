"""The moving average of weights: its formula, that it is what is scored and kept, and that it survives."""

from collections.abc import Callable

import pytest
import torch
from safetensors.torch import load_file

from regard.training import checkpoint
from regard.training.events import Evaluated, Step
from regard.training.loop import run
from regard.training.state import Training
from states import whole_and_resumed

Make = Callable[..., Training]


def test_follows_the_weights(make: Make) -> None:
    training = make(max_steps=9, eval_every=100, ema=0.6)
    expected = {name: tensor.double() for name, tensor in training.model.state_dict().items()}
    for event in run(training):
        if isinstance(event, Step):
            decay = min(0.6, (1 + event.step) / (10 + event.step))
            for name, tensor in training.model.state_dict().items():
                expected[name] = decay * expected[name] + (1 - decay) * tensor.double()
    assert training.ema is not None
    for name, tensor in training.ema.weights.items():
        torch.testing.assert_close(tensor.double(), expected[name], rtol=1e-4, atol=1e-6)


def test_is_what_is_scored_and_kept(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    training = make(max_steps=4, eval_every=2, ema=0.9)
    scored: list[dict[str, torch.Tensor]] = []
    real = Training.score

    def noting(self: Training, *given: object, **how: object) -> object:
        scored.append({name: tensor.clone() for name, tensor in self.model.state_dict().items()})
        return real(self, *given, **how)

    monkeypatch.setattr(Training, "score", noting)
    for event in run(training):
        if isinstance(event, Evaluated):
            assert training.ema is not None
            assert all(torch.equal(scored[-1][name], t) for name, t in training.ema.weights.items())
            own = training.model.state_dict()
            assert not all(torch.equal(scored[-1][name], own[name]) for name in own), "its own are back"
    best = checkpoint.folder_of(training.checkpoints, training.progress.best_step)
    kept = load_file(best / "ema.safetensors")
    assert all(torch.equal(tensor, kept[name]) for name, tensor in training.model.state_dict().items())


def test_goes_on_to_the_same_bits(make: Make) -> None:
    whole, again = whole_and_resumed(make, ema=0.8)
    assert whole.ema is not None
    assert again.ema is not None
    assert all(torch.equal(tensor, again.ema.weights[name]) for name, tensor in whole.ema.weights.items())
