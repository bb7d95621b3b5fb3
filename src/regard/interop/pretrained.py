"""Where a model begins: with random weights, or (`model.init_from`) with what was trained before.

That is an encoder under a new head, or all of a language model. Sizes and vocabulary are then those that were
found: a recipe need not repeat them, and may not contradict.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.errors import RecipeError
from regard.interop.decoder import Decoder, read_decoder
from regard.interop.encoder import PART, Encoder, read_encoder
from regard.models import BertPretraining, BertPretrainingConfig, EncoderConfig, EncodingConfig, GPTConfig
from regard.models.height import MARKS
from regard.recipe import Recipe

Found = Encoder | Decoder
NO_SETTING = {"kind", "preset", "init_from"}
"""Of what was found."""
MAY_DIFFER = (MARKS, "pooling.", "spans.")
"""What means the same in every model that has it, but not every one has, or has as many of."""


def beginning(recipe: Recipe, base: Path = Path()) -> Found | None:
    """What the recipe's model begins with, if it is not random."""
    model = recipe.model
    if not isinstance(model, EncodingConfig | GPTConfig) or model.init_from is None:
        return None
    return (read_decoder if isinstance(model, GPTConfig) else read_encoder)(base / model.init_from)


def settled(recipe: Recipe, begins: Found | None) -> Recipe:
    """The recipe with the sizes that were found; RecipeError if it asks for others."""
    if begins is None:
        return recipe
    if recipe.task.tokenizer != type(recipe.task.tokenizer)():
        raise RecipeError(f"task.tokenizer: the vocabulary is that of {begins.folder}; leave this out")
    model, told = recipe.model, recipe.model_dump(mode="json")
    if isinstance(model, GPTConfig):
        own = _own(model, begins, "model") | {"init_from": model.init_from}
        told["model"] = begins.config.model_copy(update=own).model_dump(mode="json")
    else:
        assert isinstance(model, EncodingConfig)
        told["model"]["encoder"] = _agreed(model, begins).model_dump(mode="json")
    return Recipe.parse(told, str(begins.folder))


def _agreed(model: EncodingConfig, begins: Found) -> EncoderConfig:
    asked, found = model.encoder, begins.config
    assert not isinstance(found, GPTConfig)
    if isinstance(model, BertPretrainingConfig) and found.kind != asked.kind:
        raise RecipeError(
            f"model.init_from: the encoder in {begins.folder} is {found.kind!r}, what is pretrained is "
            f"{asked.kind!r}; begin with a BERT, or without init_from"
        )
    if "encoder" not in model.model_fields_set:
        return found
    if asked.kind != found.kind:
        raise RecipeError(
            f"model.encoder.kind is {asked.kind!r}, the encoder in {begins.folder} is {found.kind!r}; "
            "take that, or leave it out"
        )
    return found.model_copy(update=_own(asked, begins, "model.encoder"))


def _own(asked: EncoderConfig | GPTConfig, begins: Found, where: str) -> dict[str, Any]:
    """What is for the recipe to say: how much is dropped out. All else must be as it was found."""
    own = {}
    for name in sorted(asked.model_fields_set - NO_SETTING):
        if name.endswith("dropout"):
            own[name] = getattr(asked, name)
        elif getattr(asked, name) != getattr(begins.config, name):
            what = where.removeprefix("model.")
            raise RecipeError(
                f"{where}.{name} is {getattr(asked, name)!r}, the {what} in {begins.folder} has "
                f"{getattr(begins.config, name)!r}; leave it out"
            )
    return own


def begin(model: nn.Module, begins: Found) -> None:
    """Copy what was trained into a new model: all of a decoder; an encoder, and of its marks and its heads
    what fits. A pretraining goes on with what told hidden words before. The rest stays random.
    """
    own = model.state_dict()
    may_differ: tuple[str, ...] = MAY_DIFFER
    if isinstance(model, BertPretraining) and isinstance(begins, Encoder):
        may_differ += begins.pretrained
    with torch.no_grad():
        for name, tensor in begins.tensors.items():
            fits = name in own and own[name].shape == tensor.shape
            needed = isinstance(begins, Decoder) or name.startswith(PART)
            if fits if name.startswith(may_differ) else needed:
                own[name].copy_(tensor)
