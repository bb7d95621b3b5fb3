"""Hugging Face's ViT and DeiT: how their tensors correspond to ours, and folders read without transformers.

Only config.json, preprocessor_config.json and safetensors are read. A tensor that no ViT has is refused,
since the folder would hold a different model than it claims.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from regard.config import first_fault
from regard.errors import CheckpointError, RecipeError
from regard.fields.image import Image, ImageSettings
from regard.interop.bert import ACTIVATIONS, labels_of
from regard.interop.tensors import WEIGHTS, check_tensors, open_tensors
from regard.models import ViTConfig
from regard.models.meta import on_meta_device
from regard.runs.store import read_json

MODEL_TYPES = ("vit", "deit")
CLASSIFIERS = {"vit": "ViTForImageClassification", "deit": "DeiTForImageClassification"}
PREPROCESSOR = "preprocessor_config.json"
SIZES = {
    "d_model": "hidden_size",
    "n_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "n_layers": "num_hidden_layers",
    "patch": "patch_size",
}
NAMES = SIZES | {"norm_eps": "layer_norm_eps", "dropout": "hidden_dropout_prob"}
"""Names of our settings in config.json."""
PROJECTION = "embeddings.patch_embeddings.projection"
CLASS_TOKENS = ("embeddings.cls_token", "embeddings.distillation_token")
POSITIONS = "embeddings.position_embeddings"
LAYER = {
    "self.q": "attention.attention.query",
    "self.k": "attention.attention.key",
    "self.v": "attention.attention.value",
    "self.o": "attention.output.dense",
    "self_norm": "layernorm_before",
    "ff.inner": "intermediate.dense",
    "ff.outer": "output.dense",
    "ff_norm": "layernorm_after",
}
HEAD = {"output.weight": "classifier.weight", "output.bias": "classifier.bias"}
IGNORED = re.compile(r"pooler\..*|embeddings\.mask_token|decoder\..*|(cls|distillation)_classifier\..*")
MEAN, DEVIATION = 0.5, 0.5
"""Of every channel, where no preprocessor says anything else: of fractions, not of bytes."""
LARGEST = 255


@dataclass(frozen=True)
class ViTFolder:
    config: ViTConfig
    field: Image
    """How pictures are brought to size and normalised."""
    tensors: dict[str, Tensor]
    """By the names of our models: encoder.…, and those of the head if there is one."""
    labels: tuple[str, ...]
    """Labels of the classifier; none without one."""
    content: dict[str, Any]
    """Content of config.json."""


def read(folder: Path) -> ViTFolder:
    path = folder / "config.json"
    content = read_json(path)
    config, shape = _config(path, content)
    field = _field(folder, shape)
    try:
        encoder = on_meta_device(lambda: config.build(field.width))
    except RecipeError as fault:
        raise CheckpointError(f"{path}: damaged ({fault})") from None
    tensors = _tensors(folder / WEIGHTS, config, shape[2], encoder.state_dict())
    tensors |= {"encoder.normalise.mean_C": torch.tensor(field.mean)}
    tensors |= {"encoder.normalise.deviation_C": torch.tensor(field.deviation)}
    n_labels = len(tensors["output.bias"]) if "output.bias" in tensors else 0
    return ViTFolder(config, field, tensors, labels_of(path, content, n_labels), content)


def correspondence(config: ViTConfig) -> Iterator[tuple[str, str]]:
    """Our names, relative to the encoder, and theirs, of tensors that have the same shape in both."""
    yield "stem.project.bias", f"{PROJECTION}.bias"
    yield from (("stack.norm.weight", "layernorm.weight"), ("stack.norm.bias", "layernorm.bias"))
    for layer in range(config.n_layers):
        for ours, theirs in LAYER.items():
            for kind in ("weight", "bias"):
                yield f"stack.layers.{layer}.{ours}.{kind}", f"encoder.layer.{layer}.{theirs}.{kind}"


def from_theirs(theirs: dict[str, Tensor], config: ViTConfig) -> dict[str, Tensor]:
    """Our encoder's tensors: the patches of theirs are planes, and every class token is one of its own."""
    tensors = {ours: theirs[name] for ours, name in correspondence(config)}
    tokens = torch.cat([theirs[name][0] for name in CLASS_TOKENS[: config.class_tokens]])
    projection_DCYX = theirs[f"{PROJECTION}.weight"]
    return tensors | {
        "class_tokens": tokens,
        "position.weight": theirs[POSITIONS][0],
        "stem.project.weight": projection_DCYX.permute(0, 2, 3, 1).flatten(1),
    }


def to_theirs(tensors: dict[str, Tensor], config: ViTConfig, n_channels: int) -> dict[str, Tensor]:
    """The inverse of `from_theirs`."""
    theirs = {name: tensors[ours] for ours, name in correspondence(config)}
    tokens = tensors["class_tokens"][:, None, None]
    patches_DF = tensors["stem.project.weight"]
    projection_DYXC = patches_DF.view(-1, config.patch, config.patch, n_channels)
    return theirs | {
        **dict(zip(CLASS_TOKENS, tokens, strict=False)),
        POSITIONS: tensors["position.weight"][None],
        f"{PROJECTION}.weight": projection_DYXC.permute(0, 3, 1, 2).contiguous(),
    }


def _config(path: Path, content: dict[str, Any]) -> tuple[ViTConfig, tuple[int, int, int]]:
    """Our settings; rows, columns and channels of the pictures."""
    activation = content.get("hidden_act", "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(f"{path}: hidden_act {activation!r} is not supported by regard")
    n_channels = content.get("num_channels", 3)
    size = content.get("image_size")
    sides = tuple(size) if isinstance(size, list) else (size, size)
    if n_channels not in (1, 3) or len(sides) != 2 or not all(map(_is_side, sides)):
        raise CheckpointError(
            f"{path}: image_size {size!r} with num_channels {n_channels!r} is not supported by regard: sides "
            "up to 1,024, and 1 or 3 channels"
        )
    try:
        config = ViTConfig(
            **{ours: content[theirs] for ours, theirs in SIZES.items()},
            class_tokens=1 + (content["model_type"] == "deit"),
            activation=ACTIVATIONS[activation],
            norm_eps=content.get("layer_norm_eps", 1e-12),
            dropout=content.get("hidden_dropout_prob", 0.0),
        )
    except KeyError as error:
        raise CheckpointError(f"{path}: {error.args[0]} is missing") from None
    except ValidationError as error:
        raise CheckpointError(f"{path}: {first_fault(error, NAMES)}") from None
    return config, (int(sides[0]), int(sides[1]), n_channels)


def _is_side(value: Any) -> bool:
    return isinstance(value, int) and 0 < value <= 1024


def _field(folder: Path, shape: tuple[int, int, int]) -> Image:
    """Mean and deviation from the preprocessor's file; without one, those that are usual."""
    path = folder / PREPROCESSOR
    content = read_json(path) if path.is_file() else {}
    crops = content.get("do_center_crop", False) is True
    n_channels = shape[2]
    means, deviations = (
        content.get(name, [usual] * n_channels) if content.get("do_normalize", True) else [plain] * n_channels
        for name, usual, plain in (("image_mean", MEAN, 0.0), ("image_std", DEVIATION, 1.0))
    )
    scale = content.get("rescale_factor", 1 / LARGEST) if content.get("do_rescale", True) else 1.0
    try:
        mean, deviation = (tuple(float(value) / scale for value in values) for values in (means, deviations))
        if not (len(mean) == len(deviation) == n_channels and min(deviation) > 0):
            raise ValueError("as many as there are channels, deviations above 0")
    except (TypeError, ValueError, ZeroDivisionError) as fault:
        raise CheckpointError(f"{path}: image_mean and image_std do not fit ({fault})") from None
    settings = ImageSettings(
        size=shape[:2], channels=1 if n_channels == 1 else 3, resize="crop" if crops else "stretch"
    )
    return Image(settings, shape, mean, deviation)


def _tensors(
    path: Path, config: ViTConfig, n_channels: int, expected: dict[str, Tensor]
) -> dict[str, Tensor]:
    """The tensors under our names, after checking every name and shape against config.json."""
    ours = {name: tensor for name, tensor in expected.items() if not name.startswith("normalise.")}
    shapes = {name: tuple(tensor.shape) for name, tensor in to_theirs(ours, config, n_channels).items()}
    with open_tensors(path, _normalise) as file:
        biases = {name for name in shapes if name.endswith(("query.bias", "key.bias", "value.bias"))}
        missing = biases - file.shapes.keys() if biases.isdisjoint(file.shapes) else set()
        head = {theirs: ours for ours, theirs in HEAD.items() if theirs in file.shapes}
        n_labels = file.shapes.get("classifier.bias", (0,))[0]
        in_head = {"classifier.weight": (n_labels, config.d_model), "classifier.bias": (n_labels,)}
        there = {name: shape for name, shape in shapes.items() if name not in missing}
        check_tensors(file, there | (in_head if head else {}), IGNORED)
        theirs = {name: file.tensor(name) for name in there}
        theirs |= {name: torch.zeros(shapes[name]) for name in missing}  # qkv_bias = false
        tensors = {f"encoder.{name}": tensor for name, tensor in from_theirs(theirs, config).items()}
        return tensors | {ours: file.tensor(name) for name, ours in head.items()}


def _normalise(name: str) -> str:
    """Removes the prefix of models with a head."""
    return re.sub(r"^(vit|deit)\.", "", name)
