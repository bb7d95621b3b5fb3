"""Fine-tuning by layer depth: what is frozen stays to the bit, lower layers take shorter steps."""

from pathlib import Path
from typing import Any

import pytest

import regard
from berts import fine_tuning, goes_on_where_it_stood, written
from regard.errors import RecipeError
from regard.models.layer_depth import freeze, layer_depth, layer_rates
from regard.runs.prepare import prepare
from tiny import DIMS, classifier, classifying, planted


def recipe(folder: Path, model: dict[str, Any], **train: Any) -> regard.Recipe:
    written(folder / "bert", num_hidden_layers=3)
    data = {"train": planted(folder, 43), "valid": planted(folder, 7, "valid")}
    given = fine_tuning(folder, folder / "bert", data, **model)
    given["train"] |= {"optimizer": "adamw", "weight_decay": 0.1, "warmup": 0, "schedule": "constant"} | train
    return regard.Recipe.parse(given)


def moved(given: regard.Recipe) -> dict[str, float]:
    """How far every weight has gone at most."""
    with prepare(given) as run:
        before = {name: tensor.clone() for name, tensor in run.training.model.state_dict().items()}
        for _ in run.events():
            pass
        after = run.training.model.state_dict()
        return {name: float((after[name] - tensor).abs().max()) for name, tensor in before.items()}


@pytest.mark.parametrize("n_layers", [0, 2])
def test_what_is_frozen_stays_to_the_bit(tmp_path: Path, n_layers: int) -> None:
    found = moved(recipe(tmp_path, {"freeze": n_layers}))
    for name, distance in found.items():
        assert (distance == 0) == (layer_depth(name) <= n_layers), name
    assert {name for name in found if layer_depth(name) == 0} == {
        "encoder.embed.weight",
        "encoder.embed.position.weight",
        "encoder.segment.weight",
        "encoder.embed_norm.weight",
        "encoder.embed_norm.bias",
    }


def test_a_frozen_run_goes_on_where_it_stood(tmp_path: Path) -> None:
    whole = recipe(tmp_path, {"freeze": 1}, max_steps=6, eval_every=3)
    assert goes_on_where_it_stood(whole)


def test_lower_layers_take_shorter_steps(tmp_path: Path) -> None:
    """Adam's first step is as long as its rate, whatever the gradient."""
    found = moved(recipe(tmp_path, {}, max_steps=1, layer_decay=0.5, weight_decay=0.0, lr=1e-3, eps=1e-12))
    for name, distance in found.items():
        if name.endswith(("position.weight", "segment.weight", ".k.bias")):
            continue  # rows that no text has, and what softmax cannot see
        below = 4 - min(layer_depth(name), 4)
        assert distance == pytest.approx(1e-3 * 0.5**below, rel=0.01), name


def test_rates_are_those_of_every_weight_once() -> None:
    model = classifier("transformer", norm="pre").build(DIMS)
    found = layer_rates(model, 0.9)
    assert found.keys() == dict(model.named_parameters()).keys()
    assert found["output.weight"] == found["pooling.query_D"] == found["encoder.stack.norm.bias"] == 1
    assert found["encoder.stack.layers.1.ff_norm.bias"] == pytest.approx(0.9)
    assert found["encoder.stack.layers.0.self.q.weight"] == pytest.approx(0.81)
    assert found["encoder.embed.weight"] == pytest.approx(0.729)


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "too deep": ({"freeze": 4}, {}, r"model\.freeze \(4\) is more than the 3 layers of the encoder"),
    "negative": ({"freeze": -1}, {}, r"model\.freeze: -1 should be greater than or equal to 0"),
    "muon": ({}, {"optimizer": "muon", "layer_decay": 0.9}, "muon has one learning rate for all layers"),
    "growing": ({}, {"layer_decay": 1.1}, r"train\.layer_decay: 1\.1 should be less than or equal to 1"),
}


@pytest.mark.parametrize(("model", "train", "sentence"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_said(
    tmp_path: Path, model: dict[str, Any], train: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(RecipeError, match=sentence):
        prepare(recipe(tmp_path, model, **train))


def test_embeddings_of_any_encoder_can_stay() -> None:
    model = classifier("rnn").build(DIMS)
    freeze(model, 0)
    assert {name for name, it in model.named_parameters() if not it.requires_grad} == {"encoder.embed.weight"}


def test_an_encoder_without_layers_has_no_heights(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match=r"layer_decay: works with an encoder of layers \(transformer, bert\)"
    ):
        classifying(tmp_path, layer_decay=0.9)
