"""Low-rank changes: only they and the head learn; they begin as nothing and end inside the matrices."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from berts import TEXTS, fine_tuning, goes_on_where_it_stood, written
from regard.decode import in_order
from regard.errors import RecipeError
from regard.interop.encoder import read_encoder
from regard.layers.inputs import tokens
from regard.models.layer_depth import layer_depth
from regard.models.lora import PART, adapt, merged
from regard.runs.prepare import prepare
from tiny import DIMS, classifier, classifying, inputs, planted, stirred


def recipe(folder: Path, model: dict[str, Any], **train: Any) -> regard.Recipe:
    written(folder / "bert", num_hidden_layers=3)
    data = {"train": planted(folder, 43), "valid": planted(folder, 7, "valid")}
    given = fine_tuning(folder, folder / "bert", data, **{"lora": 2} | model)
    given["train"] |= {"lr": 0.02} | train
    return regard.Recipe.parse(given)


def test_changes_begin_as_none_and_can_be_put_into_the_matrices() -> None:
    config = classifier("bert", "pooler")
    model, given = stirred(config.build(DIMS)), tokens(*inputs().texts)
    before = model(given)
    adapt(model, 3)
    assert torch.equal(model(given), before)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if PART in name:
                parameter.copy_(torch.randn_like(parameter))
    after = model(given)
    assert (after - before).abs().max() > 0.1
    plain = config.build(DIMS).eval()
    plain.load_state_dict(merged(model))
    torch.testing.assert_close(plain(given), after, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("freeze", [None, 2])
def test_only_changes_and_what_is_above_learn(tmp_path: Path, freeze: int | None) -> None:
    with prepare(recipe(tmp_path, {"freeze": freeze})) as run:
        learning = {name for name, it in run.training.model.named_parameters() if it.requires_grad}
        assert {name for name in learning if PART not in name} == {"output.weight", "output.bias"}
        changed = {layer_depth(name) for name in learning if PART in name}
        assert changed == ({1, 2, 3} if freeze is None else {3})
        per_layer = sum(PART in name for name in learning) // len(changed)
        assert per_layer == 2 * 6, "two factors for each of the six matrices of a layer"


def test_what_is_saved_is_a_plain_model_that_answers_as_it_was_trained(tmp_path: Path) -> None:
    given = recipe(tmp_path, {})
    with prepare(given) as run:
        for _ in run.events():
            pass
        texts = run.training.task.encode([regard.files.row.Row({"text": text}, "x", 1) for text in TEXTS])
        expected = in_order(
            run.training.task.predict(run.training.model.eval(), run.training.task.collate(texts))
        )
    saved = regard.load(tmp_path / "run", device="cpu")
    assert not any(PART in name for name in saved.model.state_dict())
    for ours, theirs in zip(saved.predict(TEXTS), expected, strict=True):
        assert ours.probability == pytest.approx(theirs.probability, abs=1e-5)
    before, after = read_encoder(tmp_path / "bert").tensors, saved.model.state_dict()
    moved = {
        name for name, tensor in before.items() if name in after and not torch.equal(tensor, after[name])
    }
    assert {name.rsplit(".", 2)[-2] for name in moved} == {"q", "k", "v", "o", "inner", "outer"}


def test_a_run_goes_on_where_it_stood(tmp_path: Path) -> None:
    whole = recipe(tmp_path, {}, max_steps=6, eval_every=3)
    assert goes_on_where_it_stood(whole)


def test_it_needs_something_to_change(tmp_path: Path) -> None:
    given = classifying(tmp_path).model_dump()
    given["model"]["lora"] = 2
    with pytest.raises(RecipeError, match=r"model\.lora: adapts the layers of a trained encoder; set"):
        regard.Recipe.parse(given)
    with pytest.raises(RecipeError, match=r"model\.lora: its few weights are not sharded"):
        prepare(recipe(tmp_path, {}, shard=True))
