"""Weights expanded to a plain Transformer: keys and values for every head, a bias for every linear map.

Grouped key-value heads are repeated, absent biases become zeros; engines that only know the plain Transformer
then compute the same function, at the price of a few more numbers.
"""

from typing import TypeVar

import torch
from torch import Tensor, nn

from regard.models import GPTConfig, TransformerConfig

C = TypeVar("C", TransformerConfig, GPTConfig)
DENSE = tuple(f".{name}" for name in ("q", "k", "v", "o", "inner", "gate", "outer"))


def expand_weights(model: nn.Module, config: C) -> tuple[dict[str, Tensor], C]:
    """Copy the weights to the CPU in plain form, with the config that describes them.

    They are copies because an exporter may round them in place.
    """
    weights = {
        name: tensor.detach().to("cpu", torch.float32, copy=True)
        for name, tensor in model.state_dict().items()
    }
    group = config.n_heads // (config.n_kv_heads or config.n_heads)
    expanded: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        owner = name.rpartition(".")[0]
        expanded[name] = _repeat_heads(tensor, group, config) if owner.endswith((".k", ".v")) else tensor
        if not config.bias and owner.endswith(DENSE):
            expanded[f"{owner}.bias"] = expanded[name].new_zeros(expanded[name].shape[0])
    return expanded, config.model_copy(update={"n_kv_heads": None, "bias": True})


def _repeat_heads(tensor: Tensor, group: int, config: TransformerConfig | GPTConfig) -> Tensor:
    """Repeat each key or value head for every query head that it serves."""
    heads = torch.unflatten(tensor, 0, (config.n_heads // group, -1))
    return heads.repeat_interleave(group, dim=0).flatten(0, 1)
