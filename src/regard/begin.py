"""Where a model begins: with random weights, or (`model.init_from`) with an encoder that was trained before.

Sizes and vocabulary are then those of the encoder: a recipe need not repeat them, and may not contradict.
"""

from pathlib import Path

import torch
from torch import nn

from regard.encoder import PART, Encoder, read_encoder
from regard.errors import RecipeError
from regard.models import EncoderConfig, EncodingConfig
from regard.models.height import MARKS
from regard.recipe import Recipe

MAY_DIFFER = (MARKS, "pooling.", "spans.")
"""What means the same in every model that has it, but not every one has, or has as many of."""


def beginning(recipe: Recipe, base: Path = Path()) -> Encoder | None:
    """What the recipe's model begins with, if it is not random."""
    if not isinstance(recipe.model, EncodingConfig) or recipe.model.init_from is None:
        return None
    return read_encoder(base / recipe.model.init_from)


def settled(recipe: Recipe, begins: Encoder | None) -> Recipe:
    """The recipe with the sizes that the encoder has; RecipeError if it asks for others."""
    if begins is None:
        return recipe
    assert isinstance(recipe.model, EncodingConfig)
    if recipe.task.tokenizer != type(recipe.task.tokenizer)():
        raise RecipeError(f"task.tokenizer: the vocabulary is that of {begins.folder}; leave this out")
    told = recipe.model_dump(mode="json")
    told["model"]["encoder"] = _agreed(recipe.model, begins).model_dump(mode="json")
    return Recipe.parse(told)


def _agreed(model: EncodingConfig, begins: Encoder) -> EncoderConfig:
    """The encoder that was found; how much is dropped out is for the recipe to say."""
    asked, found = model.encoder, begins.config
    if "encoder" not in model.model_fields_set:
        return found
    if asked.kind != found.kind:
        raise RecipeError(
            f"model.encoder.kind is {asked.kind!r}, the encoder in {begins.folder} is {found.kind!r}; "
            "take that, or leave it out"
        )
    own = {}
    for name in sorted(asked.model_fields_set - {"preset"}):
        if name.endswith("dropout"):
            own[name] = getattr(asked, name)
        elif getattr(asked, name) != getattr(found, name):
            raise RecipeError(
                f"model.encoder.{name} is {getattr(asked, name)!r}, the encoder in {begins.folder} has "
                f"{getattr(found, name)!r}; leave it out"
            )
    return found.model_copy(update=own)


def begin(model: nn.Module, begins: Encoder) -> None:
    """Copy the encoder's weights into a new model, and of its marks and its heads what fits; the rest stays
    random.
    """
    own = model.state_dict()
    with torch.no_grad():
        for name, tensor in begins.tensors.items():
            fits = name in own and own[name].shape == tensor.shape
            if fits if name.startswith(MAY_DIFFER) else name.startswith(PART):
                own[name].copy_(tensor)
