"""A captioner begins with an encoder of pictures that was trained for something else."""

from pathlib import Path
from typing import Any

import pytest
import torch

from captions import RNN, captioner
from pictures import classifier
from regard.errors import RecipeError
from regard.interop.pretrained import initialize, load_pretrained, resolve
from regard.recipe import Recipe
from regard.runs.store import save_model


def recipe(folder: Path, **model: Any) -> Recipe:
    return Recipe.parse(
        {
            "task": {"kind": "caption", "tokenizer": {"kind": "word"}},
            "data": {"train": "c.json"},
            "model": {"kind": "captioner", "init_from": str(folder), "decoder": RNN, **model},
        }
    )


@pytest.mark.parametrize("name", ["cnn", "vit-class"])
def test_its_encoder_is_that_of_a_classifier(name: str, tmp_path: Path) -> None:
    task, model, config = classifier(name)
    save_model(tmp_path / "run", task, task.config, model, config, {})
    pretrained = load_pretrained(recipe(tmp_path / "run"))
    assert pretrained is not None
    assert pretrained.vocabulary is None
    resolved = resolve(recipe(tmp_path / "run"), pretrained)
    captions, _, _ = captioner("cnn-rnn")
    ours = resolved.model.build(captions.widths)
    initialize(ours, pretrained)
    learnt = model.state_dict()
    names = [one for one in ours.state_dict() if one.startswith("encoder.")]
    assert len(names) > 5
    assert all(torch.equal(ours.state_dict()[one], learnt[one]) for one in names)


def test_its_encoder_is_a_vit_of_hugging_face(tmp_path: Path) -> None:
    import transformers

    torch.manual_seed(1)
    config = transformers.ViTConfig(
        hidden_size=12,
        num_attention_heads=3,
        intermediate_size=11,
        num_hidden_layers=2,
        image_size=[12, 20],
        patch_size=4,
    )
    transformers.ViTModel(config).save_pretrained(tmp_path / "vit")
    pretrained = load_pretrained(recipe(tmp_path / "vit"))
    assert pretrained is not None
    resolved = resolve(recipe(tmp_path / "vit"), pretrained)
    captions, _, _ = captioner("cnn-rnn")
    ours = resolved.model.build(captions.widths)
    initialize(ours, pretrained)
    assert torch.equal(
        ours.state_dict()["encoder.position.weight"], pretrained.tensors["encoder.position.weight"]
    )
    small = ours.state_dict()["encoder.position.weight"][:5]
    pretrained.tensors["encoder.position.weight"] = small
    with pytest.raises(RecipeError, match=r"encoder.position.weight is 5 × 12 in .*, and 16 × 12 here; give"):
        initialize(ours, pretrained)


def test_a_task_of_texts_does_not_begin_with_pictures(tmp_path: Path) -> None:
    task, model, config = classifier("cnn")
    save_model(tmp_path / "run", task, task.config, model, config, {})
    texts = Recipe.parse(
        {
            "task": {"kind": "classify"},
            "data": {"train": "t.csv"},
            "model": {"kind": "classifier", "init_from": str(tmp_path / "run")},
        }
    )
    with pytest.raises(RecipeError, match=r"cnn reads pixels, but the task's input is tokens"):
        resolve(texts, load_pretrained(texts))
