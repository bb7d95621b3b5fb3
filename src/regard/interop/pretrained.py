"""Pretrained weights for a new model (`model.init_from`).

They are an encoder under a new head, or a whole language model. Sizes and vocabulary are then the pretrained
model's: a recipe need not repeat them, and must not contradict them.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RecipeError
from regard.interop.decoder import PretrainedDecoder, read_decoder
from regard.interop.encoder import PREFIX, PretrainedEncoder, read_encoder
from regard.models import BertPretraining, BertPretrainingConfig, EncoderConfig, EncodingConfig, GPTConfig
from regard.models.layer_depth import MARKS
from regard.recipe import Recipe

Pretrained = PretrainedEncoder | PretrainedDecoder
NOT_SIZES = {"kind", "preset", "init_from"}
"""Fields of a model config that do not describe the pretrained model."""
OPTIONAL = (MARKS, "pooling.", "spans.")
"""Tensors that mean the same in every model, but that a model may lack, or have in another number."""


def load_pretrained(recipe: Recipe, base: Path = Path()) -> Pretrained | None:
    """Load what the recipe's `model.init_from` names, if anything."""
    model = recipe.model
    if not isinstance(model, EncodingConfig | GPTConfig) or model.init_from is None:
        return None
    return (read_decoder if isinstance(model, GPTConfig) else read_encoder)(base / model.init_from)


def resolve(recipe: Recipe, pretrained: Pretrained | None) -> Recipe:
    """Fill in the pretrained model's sizes; RecipeError if the recipe contradicts them."""
    if pretrained is None:
        return recipe
    tokenizer: Any = getattr(recipe.task, "tokenizer", None)
    if pretrained.vocabulary is not None and tokenizer is not None and tokenizer != type(tokenizer)():
        raise RecipeError(f"task.tokenizer: the vocabulary comes from {pretrained.folder}; leave this out")
    model, content = recipe.model, recipe.model_dump(mode="json")
    if isinstance(model, GPTConfig):
        changed = _changed_settings(model, pretrained, "model") | {"init_from": model.init_from}
        content["model"] = pretrained.config.model_copy(update=changed).model_dump(mode="json")
    else:
        assert isinstance(model, EncodingConfig)
        content["model"]["encoder"] = _resolve_encoder(model, pretrained).model_dump(mode="json")
    return Recipe.parse(content, str(pretrained.folder))


def _resolve_encoder(model: EncodingConfig, pretrained: Pretrained) -> EncoderConfig:
    in_recipe, in_folder = model.encoder, pretrained.config
    assert not isinstance(in_folder, GPTConfig)
    if isinstance(model, BertPretrainingConfig) and in_folder.kind != in_recipe.kind:
        raise RecipeError(
            f"model.init_from: the encoder in {pretrained.folder} is {in_folder.kind!r}, but pretraining "
            f"needs {in_recipe.kind!r}; give a BERT, or drop init_from"
        )
    if "encoder" not in model.model_fields_set:
        return in_folder
    if in_recipe.kind != in_folder.kind:
        raise RecipeError(
            f"model.encoder.kind is {in_recipe.kind!r}, the encoder in {pretrained.folder} is "
            f"{in_folder.kind!r}; use that, or leave it out"
        )
    return in_folder.model_copy(update=_changed_settings(in_recipe, pretrained, "model.encoder"))


def _changed_settings(
    in_recipe: EncoderConfig | GPTConfig, pretrained: Pretrained, where: str
) -> dict[str, Any]:
    """Dropout rates that the recipe sets; RecipeError if it sets anything else to another value."""
    changed = {}
    for name in sorted(in_recipe.model_fields_set - NOT_SIZES):
        if name.endswith("dropout"):
            changed[name] = getattr(in_recipe, name)
        elif getattr(in_recipe, name) != getattr(pretrained.config, name):
            part = where.removeprefix("model.")
            raise RecipeError(
                f"{where}.{name} is {getattr(in_recipe, name)!r}, the {part} in {pretrained.folder} has "
                f"{getattr(pretrained.config, name)!r}; leave it out"
            )
    return changed


def initialize(model: nn.Module, pretrained: Pretrained) -> None:
    """Copy pretrained weights into a new model; what they do not cover stays random.

    A decoder is copied whole; of an encoder, the encoder itself and those optional tensors that fit. A
    pretraining also continues with the heads of the one before.
    """
    tensors = model.state_dict()
    optional: tuple[str, ...] = OPTIONAL
    if isinstance(model, BertPretraining) and isinstance(pretrained, PretrainedEncoder):
        optional += pretrained.pretraining_heads
    with torch.no_grad():
        for name, tensor in pretrained.tensors.items():
            fits = name in tensors and tensors[name].shape == tensor.shape
            required = isinstance(pretrained, PretrainedDecoder) or name.startswith(PREFIX)
            if fits if name.startswith(optional) else required:
                _refuse_misfit(name, tensor, tensors.get(name), pretrained.folder)
                tensors[name].copy_(tensor)


def _refuse_misfit(name: str, theirs: Tensor, ours: Tensor | None, folder: Path) -> None:
    """Refuse what depends on the size of inputs, such as the positions of patches, if sizes differ."""
    if ours is None or ours.shape != theirs.shape:
        there, here = (
            "missing" if one is None else " × ".join(map(str, one.shape)) for one in (theirs, ours)
        )
        raise RecipeError(
            f"model.init_from: {name} is {there} in {folder}, and {here} here; give inputs the size that the "
            "encoder was trained with (fields.image.size and channels)"
        )
