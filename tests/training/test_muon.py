"""Muon against torch's, against the definition of what it approximates, and through a resume."""

from collections.abc import Callable

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from regard.linear import Convolution, Linear
from regard.training.config import TrainConfig
from regard.training.loop import run
from regard.training.muon import Muon, orthogonalize
from regard.training.state import Training
from states import state, whole_and_resumed

Make = Callable[..., Training]
SHAPES = [(7, 13), (13, 7), (11, 11), (7, 13)]


@pytest.mark.parametrize("shape", [(3, 7, 13), (2, 13, 7), (1, 11, 11)])
def test_keeps_directions_and_evens_out_lengths(shape: tuple[int, int, int]) -> None:
    x = torch.randn(shape, dtype=torch.float64)
    left, _, right = torch.linalg.svd(x, full_matrices=False)
    lengths = left.mT @ orthogonalize(x) @ right.mT
    along = lengths.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(lengths, torch.diag_embed(along))
    assert along.min() > 0.3
    assert along.max() < 1.3


def test_moves_matrices_as_torchs_does_and_the_rest_as_adamw() -> None:
    """Torch's multiplies in bfloat16, hence the tolerance."""
    torch.manual_seed(1)
    ours = nn.ModuleDict({str(n): Linear(d_in, d_out) for n, (d_out, d_in) in enumerate(SHAPES)})
    theirs = [nn.Parameter(linear.weight.detach().clone()) for linear in ours.values()]
    biases = [nn.Parameter(linear.bias.detach().clone()) for linear in ours.values()]
    settings = {"lr": 0.03, "weight_decay": 0.2}
    muon = Muon(ours, betas=(0.9, 0.98), eps=1e-9, fused=True, **settings)
    matrix_judge = torch.optim.Muon(theirs, adjust_lr_fn="match_rms_adamw", **settings)
    other_judge = torch.optim.AdamW(biases, betas=(0.9, 0.98), eps=1e-9, **settings)
    for _ in range(5):
        for linear, weight, bias in zip(ours.values(), theirs, biases, strict=True):
            linear.weight.grad = weight.grad = torch.randn_like(weight)
            linear.bias.grad = bias.grad = torch.randn_like(bias)
        for optimizer in (muon, matrix_judge, other_judge):
            optimizer.step()
    for linear, weight, bias in zip(ours.values(), theirs, biases, strict=True):
        torch.testing.assert_close(linear.weight, weight, rtol=0.02, atol=0.002)
        torch.testing.assert_close(linear.bias, bias)


def test_leaves_embeddings_and_the_output_to_adam() -> None:
    model = nn.ModuleDict({"embed": nn.Embedding(5, 3), "inner": Linear(3, 3), "output": Linear(3, 5)})
    muon = Muon(model, lr=0.1)
    model["output"](model["inner"](model["embed"](torch.arange(5)))).square().sum().backward()
    muon.step()
    with_momentum = [
        name for name, parameter in model.named_parameters() if "momentum" in muon.state[parameter]
    ]
    assert with_momentum == ["inner.weight"]
    assert all(muon.state[parameter] for parameter in model.parameters())


def test_moves_a_convolution_as_the_matrix_that_it_is() -> None:
    torch.manual_seed(2)
    convolution = Convolution(5, 7, 3)
    matrix = nn.Parameter(convolution.weight.detach().flatten(1).clone())
    settings = {"lr": 0.03, "weight_decay": 0.2}
    muon = Muon(nn.ModuleDict({"stem": convolution, "output": Linear(2, 3)}), **settings)
    judge = torch.optim.Muon([matrix], adjust_lr_fn="match_rms_adamw", **settings)
    for _ in range(5):
        matrix.grad = torch.randn_like(matrix)
        convolution.weight.grad = matrix.grad.view_as(convolution.weight).clone()
        muon.step()
        judge.step()
    torch.testing.assert_close(convolution.weight.flatten(1), matrix, rtol=0.02, atol=0.002)


def test_goes_on_to_the_same_bits(make: Make) -> None:
    whole, again = whole_and_resumed(make, optimizer="muon")
    assert all(map(torch.equal, state(whole), state(again)))


@pytest.mark.parametrize("kinds", [("muon", "adamw"), ("adam", "muon")])
def test_another_optimizer_goes_on_with_the_moments_it_knows(make: Make, kinds: tuple[str, str]) -> None:
    before, after = kinds
    list(run(make("run", optimizer=before, max_steps=3, eval_every=3)))
    training = make("run", optimizer=after, max_steps=5, eval_every=5)
    training.resume()
    kept = [name for name, one in training.model.named_parameters() if training.optimizer.state[one]]
    assert "embed_target.weight" in kept
    assert "encoder.layers.0.ff.inner.weight" not in kept
    list(run(training))
    assert training.progress.step == 5


def test_needs_whole_matrices() -> None:
    with pytest.raises(ValidationError, match="muon cannot update sharded matrices; set shard = false"):
        TrainConfig(max_steps=1, optimizer="muon", shard=True)
