"""Export to a folder for `AutoModelForImageClassification`: a ViT with a class token and one linear map.

Other classifiers of pictures are refused; transformers has no ViT that pools in another way.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from regard.errors import RunError
from regard.fields.image import Image
from regard.files.row import Asked
from regard.interop.bert import ACTIVATIONS, ONE_LABEL, SEVERAL_LABELS
from regard.interop.hf import load_model
from regard.interop.hf_bert import label_maps
from regard.interop.label_parity import LabelEngine, pixels_of
from regard.interop.parity import Floats
from regard.interop.tensors import WEIGHTS
from regard.interop.vit import CLASSIFIERS, HEAD, LARGEST, PREPROCESSOR, SIZES, to_theirs
from regard.models import ClassifierConfig, ViTConfig
from regard.runs.store import read_json, write_json
from regard.tasks import Classify, Multilabel

BILINEAR = 2
"""What transformers and Pillow call that way of resizing."""


def write(task: Classify | Multilabel, model: nn.Module, config: ClassifierConfig, folder: Path) -> None:
    encoder, field = _encoder(config), task.input
    assert isinstance(field, Image)
    tensors = {
        name: tensor.detach().to("cpu", torch.float32, copy=True)
        for name, tensor in model.state_dict().items()
    }
    inner = {name.removeprefix("encoder."): tensor for name, tensor in tensors.items()}
    model_type = "deit" if encoder.class_tokens == 2 else "vit"
    theirs = to_theirs(inner, encoder, field.shape[2])
    named = {f"{model_type}.{name}": tensor.contiguous() for name, tensor in theirs.items()}
    save_file(
        named | {name: tensors[ours] for ours, name in HEAD.items()}, folder / WEIGHTS, {"format": "pt"}
    )
    write_json(folder / "config.json", _config(task, encoder, field, model_type))
    write_json(folder / PREPROCESSOR, _preprocessor(field, model_type))
    (folder / "README.md").write_text(CARD, "utf-8")


def load_engine(folder: Path, field: Image) -> LabelEngine[Any]:
    """Load the folder with transformers; pictures come in the size that the field brings them to."""
    name, model = load_model(folder, "ImageClassification")
    settings = read_json(folder / PREPROCESSOR)
    mean_C, deviation_C = np.array(settings["image_mean"]), np.array(settings["image_std"])

    def logits(inputs: Sequence[Asked]) -> Floats:
        values_BYXC = ((pixels_of(field, inputs) * settings["rescale_factor"] - mean_C) / deviation_C).astype(
            np.float32
        )
        with torch.inference_mode():
            logits_BC: Floats = model(torch.from_numpy(values_BYXC).permute(0, 3, 1, 2)).logits.numpy()
        return logits_BC

    labels = [model.config.id2label[number] for number in range(model.config.num_labels)]
    return LabelEngine(name, labels, model.config.regard_task.get("threshold"), logits)


def _encoder(config: ClassifierConfig) -> ViTConfig:
    encoder = config.encoder
    if not isinstance(encoder, ViTConfig):
        raise RunError(
            f"hf: a classifier with a {encoder.kind} encoder has no counterpart in Hugging Face's models; "
            "export to onnx"
        )
    wanted = {"stem": "patches", "position": "learned", "bias": True}
    for name, value in wanted.items():
        if getattr(encoder, name) != value:
            raise RunError(
                f"hf: {name} = {getattr(encoder, name)!r} has no counterpart in ViT; train with "
                f"{name} = {value!r}, or export to onnx"
            )
    if config.pooling != "first" or not encoder.class_tokens:
        raise RunError(
            f"hf: pooling = {config.pooling!r} with {encoder.class_tokens} class tokens has no "
            "counterpart in ViT; train with class_tokens = 1 and pooling = 'first', or export to onnx"
        )
    if encoder.activation not in ACTIVATIONS.values():
        raise RunError(f"hf: activation = {encoder.activation!r} has no counterpart in ViT; export to onnx")
    return encoder


def _config(task: Classify | Multilabel, encoder: ViTConfig, field: Image, model_type: str) -> dict[str, Any]:
    return {
        "model_type": model_type,
        "architectures": [CLASSIFIERS[model_type]],
        **{theirs: getattr(encoder, ours) for ours, theirs in SIZES.items()},
        "image_size": list(field.shape[:2]),
        "num_channels": field.shape[2],
        "hidden_act": next(theirs for theirs, ours in ACTIVATIONS.items() if ours == encoder.activation),
        "layer_norm_eps": encoder.norm_eps,
        "hidden_dropout_prob": encoder.dropout,
        "attention_probs_dropout_prob": encoder.attention_dropout,
        "qkv_bias": True,
        "problem_type": SEVERAL_LABELS if isinstance(task, Multilabel) else ONE_LABEL,
        **label_maps(task.labels),
        "regard_task": task.config.model_dump(mode="json"),
        "torch_dtype": "float32",
    }


def _preprocessor(field: Image, model_type: str) -> dict[str, Any]:
    """Stretched pictures are resized; of others the shorter side is, and the middle cut out."""
    rows, columns, _ = field.shape
    size: dict[str, int] = {"height": rows, "width": columns}
    crops = field.config.resize == "crop"
    cut = {"crop_size": size} if crops else {}
    return {
        "image_processor_type": {"vit": "ViTImageProcessor", "deit": "DeiTImageProcessor"}[model_type],
        "do_resize": True,
        "size": {"shortest_edge": max(rows, columns)} if crops and rows == columns else size,
        "do_center_crop": crops,
        **cut,
        "resample": BILINEAR,
        "do_rescale": True,
        "rescale_factor": 1 / LARGEST,
        "do_normalize": True,
        "image_mean": [value / LARGEST for value in field.mean],
        "image_std": [value / LARGEST for value in field.deviation],
    }


CARD = """---
library_name: transformers
tags: [image-classification]
---
# A classifier of pictures, trained and exported with regard

```python
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageClassification

model = AutoModelForImageClassification.from_pretrained(".", local_files_only=True)
processor = AutoImageProcessor.from_pretrained(".", local_files_only=True)
inputs = processor(Image.open("picture.jpg").convert("RGB"), return_tensors="pt")
best = model(**inputs).logits.argmax(-1).tolist()
print([model.config.id2label[number] for number in best])
```
"""
