"""How high a weight lies in a model with an encoder: the lower, the less fine-tuning needs to change it."""

import math
import re

from torch import nn

_LAYER = re.compile(r"encoder\.stack\.layers\.(\d+)\.")
_EMBEDDINGS = ("encoder.embed.", "encoder.segment.", "encoder.embed_norm.")
MARKS = "encoder.embed.marks"
"""Of a task that has tokens of its own: new to the encoder, whatever it begins with."""


def layer_depth(name: str) -> float:
    """0 for the embeddings, n for the nth layer of the encoder, infinite for what stands above it."""
    if layer := _LAYER.match(name):
        return int(layer[1]) + 1
    return 0 if name.startswith(_EMBEDDINGS) and name != MARKS else math.inf


def freeze(model: nn.Module, n_layers: int) -> None:
    """The embeddings and the first so many layers stay as they are."""
    for name, parameter in model.named_parameters():
        if layer_depth(name) <= n_layers:
            parameter.requires_grad_(False)


def layer_rates(model: nn.Module, decay: float) -> dict[str, float]:
    """The learning rate of every weight as a factor: 1 above the encoder, times `decay` each step down."""
    depths = {name: layer_depth(name) for name, _ in model.named_parameters()}
    top = 1 + max(found for found in depths.values() if found < math.inf)
    return {name: decay ** (top - min(found, top)) for name, found in depths.items()}
