"""Classifiers of pictures leave for Hugging Face and ONNX Runtime, and ViTs from there come in."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as Pillow
from safetensors.torch import load_file, save_file
from transformers import AutoImageProcessor, DeiTConfig, DeiTForImageClassification, ViTForImageClassification
from transformers import ViTConfig as TheirConfig

import regard
from pictures import ROWS, classifier, noise, png
from regard.api.trained import Trained
from regard.errors import CheckpointError, RunError
from regard.interop.importing import import_folder

CPU = torch.device("cpu")
THEIRS: dict[str, Any] = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 11,
    "patch_size": 4,
    "num_labels": 3,
    "id2label": {0: "bird", 1: "cat", 2: "dog"},
    "label2id": {"bird": 0, "cat": 1, "dog": 2},
}


def trained(name: str, **changes: Any) -> Trained:
    task, model, config = classifier(name, **changes)
    return Trained(task, task.config, model, config, {}, CPU)


@pytest.mark.parametrize("class_tokens", [1, 2])
def test_what_left_comes_back(tmp_path: Path, class_tokens: int) -> None:
    own = trained("vit-class")
    if class_tokens == 2:
        encoder = own.model_config.encoder.model_copy(update={"class_tokens": 2})
        config = own.model_config.model_copy(update={"encoder": encoder})
        own = Trained(own.task, own.task_config, config.build(own.task.widths).eval(), config, {}, CPU)
    report = own.export(tmp_path / "out", "hf", noise(24))
    assert (report.identical, report.n_compared) == (1.0, 24)
    assert report.difference < 1e-5
    assert import_folder(tmp_path / "out", tmp_path / "back") == "classify"
    back = regard.load(tmp_path / "back", device="cpu")
    theirs, ours = back.model.state_dict(), own.model.state_dict()
    assert theirs.keys() == ours.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(theirs[name], tensor, rtol=1e-6, atol=0)
    assert [one.text for one in back.predict(noise(7))] == [one.text for one in own.predict(noise(7))]


@pytest.mark.parametrize("name", ["vit-conv", "cnn"])
def test_onnx_runtime_answers_alike(tmp_path: Path, name: str) -> None:
    report = trained(name).export(tmp_path / "out", "onnx", noise(24))
    assert (report.identical, report.n_compared) == (1.0, 24)
    assert report.difference < 1e-4


@pytest.mark.parametrize(
    ("name", "pooling", "fault"),
    [
        ("cnn", None, "a cnn encoder has no counterpart"),
        ("vit-conv", None, "stem = 'conv' has no counterpart in ViT; train with stem = 'patches'"),
        ("vit-deit", None, "position = 'none' has no counterpart"),
        ("vit", "mean", "pooling = 'mean' with 0 class tokens has no counterpart"),
        ("vit-class", "attention", "pooling = 'attention' with 1 class tokens"),
    ],
)
def test_what_transformers_has_not_is_refused(
    tmp_path: Path, name: str, pooling: str | None, fault: str
) -> None:
    with pytest.raises(RunError, match=fault):
        trained(name, pooling=pooling).export(tmp_path / "out", "hf", noise(3))
    assert not (tmp_path / "out").exists()


def written(folder: Path, *, distilled: bool = False, **changes: Any) -> Any:
    """A folder of theirs with random weights."""
    torch.manual_seed(7)
    settings = THEIRS | {"image_size": 16 if distilled else [ROWS, 16]} | changes
    model: Any = (
        DeiTForImageClassification(DeiTConfig(**settings))
        if distilled
        else ViTForImageClassification(TheirConfig(**settings))
    ).eval()
    torch.nn.init.normal_(model.classifier.weight)
    model.save_pretrained(folder)
    preprocessor = {
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": 16 if distilled else ROWS, "width": 16},
        "image_mean": [0.4, 0.5, 0.6],
        "image_std": [0.2, 0.3, 0.25],
        "resample": 2,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    return model


@pytest.mark.parametrize("changes", [{}, {"qkv_bias": False}, {"distilled": True}])
def test_theirs_answer_alike_here_from_the_file_to_the_logit(tmp_path: Path, changes: dict[str, Any]) -> None:
    model = written(tmp_path / "theirs", **changes)
    assert import_folder(tmp_path / "theirs", tmp_path / "ours") == "classify"
    ours = regard.load(tmp_path / "ours", device="cpu")
    processor = AutoImageProcessor.from_pretrained(tmp_path / "theirs", local_files_only=True)
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (19, 31, 3), np.uint8) for _ in range(11)]
    values = processor([Pillow.fromarray(one) for one in pictures], return_tensors="pt")
    with torch.inference_mode():
        theirs_BC = model(**values).logits
        ours_BC = ours.model(ours.task.collate(ours.task.encode(ours.task.asked(map(png, pictures)))).inputs)
    torch.testing.assert_close(ours_BC, theirs_BC, atol=1e-5, rtol=1e-5)
    answers = ours.predict(list(map(png, pictures)))
    assert [one.text for one in answers] == [model.config.id2label[n] for n in theirs_BC.argmax(-1).tolist()]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"hidden_act": "silu"}, "hidden_act 'silu' is not supported"),
        ({"image_size": 0}, "image_size 0 with num_channels 3 is not supported"),
        ({"image_size": [12, 16, 3]}, "is not supported"),
        ({"num_channels": 4}, "num_channels 4 is not supported"),
        ({"patch_size": 5}, "cannot be cut into patches of 5 × 5"),
        ({"patch_size": None}, "patch_size"),
        ({"hidden_size": 13}, "must divide"),
        ({"hidden_size": 24}, "has shape .*, config.json requires"),
        ({"num_hidden_layers": 3}, "is missing, config.json requires one"),
        ({"num_hidden_layers": 1}, "does not belong to this architecture"),
        ({"problem_type": "regression"}, "a regression with 3 outputs"),
        (
            {"id2label": {"0": "a", "1": "a", "2": "b"}},
            "the label of output 1 is 'a', which another output has",
        ),
    ],
)
def test_folders_that_contradict_themselves_are_refused(
    tmp_path: Path, changes: dict[str, Any], fault: str
) -> None:
    written(tmp_path / "theirs")
    path = tmp_path / "theirs" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CheckpointError, match=fault):
        import_folder(tmp_path / "theirs", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    "changes",
    [{"image_mean": [0.5]}, {"image_std": [0, 1, 1]}, {"image_mean": "half"}, {"rescale_factor": 0}],
)
def test_a_preprocessor_that_does_not_fit_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    written(tmp_path / "theirs")
    path = tmp_path / "theirs" / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CheckpointError, match="image_mean and image_std do not fit"):
        import_folder(tmp_path / "theirs", tmp_path / "ours")


def test_a_tensor_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "theirs")
    path = tmp_path / "theirs" / "model.safetensors"
    tensors = load_file(path)
    tensors["vit.layernorm.weight"][3] = torch.inf
    save_file(tensors, path, {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"layernorm.weight holds numbers that are not finite"):
        import_folder(tmp_path / "theirs", tmp_path / "ours")
