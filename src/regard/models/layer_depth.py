"""The layer depth of each parameter, for freezing and layer-wise learning-rate decay."""

import math
import re

from torch import nn

_LAYER = re.compile(r"encoder\.(?:stack\.)?layers\.(\d+)\.")
_EMBEDDINGS = (
    *("encoder.embed.", "encoder.segment.", "encoder.embed_norm."),
    *("encoder.stem.", "encoder.position.", "encoder.class_tokens"),
    *("encoder.subsample.", "encoder.look_ahead."),
)
MARKS = "encoder.embed.marks"
"""Embeddings of a task's own tokens: new to the encoder, even to a pretrained one."""


def layer_depth(name: str) -> float:
    """0 for the embeddings, n for the nth layer of the encoder, infinite above it."""
    if layer := _LAYER.match(name):
        return int(layer[1]) + 1
    return 0 if name.startswith(_EMBEDDINGS) and name != MARKS else math.inf


def freeze(model: nn.Module, n_layers: int) -> None:
    """Freezes the embeddings and the first `n_layers` layers."""
    for name, parameter in model.named_parameters():
        if layer_depth(name) <= n_layers:
            parameter.requires_grad_(False)


def layer_rates(model: nn.Module, decay: float) -> dict[str, float]:
    """The factor of each parameter's learning rate: 1 above the encoder, times `decay` a layer down."""
    depths = {name: layer_depth(name) for name, _ in model.named_parameters()}
    top = 1 + max(depth for depth in depths.values() if depth < math.inf)
    return {name: decay ** (top - min(depth, top)) for name, depth in depths.items()}
