"""Low-rank adaptation (Hu et al. 2021): the encoder is frozen, and adapters beside its matrices learn.

Every matrix of every layer has an adapter (the paper: of attention only), at the scale of its own initial
values. At the end they are merged into the matrices, so that a model like any other is saved.
"""

import math

import torch
from torch import Tensor, nn

from regard.linear import Linear, LowRank
from regard.models.layer_depth import layer_depth

PART = ".adapter."


def adapt(model: nn.Module, rank: int, above: int = 0) -> None:
    """Freezes the encoder, and adds adapters of this rank to its layers above the first `above`."""
    for name, parameter in model.named_parameters():
        if layer_depth(name) < math.inf:
            parameter.requires_grad_(False)
    for name, module in model.named_modules():
        if isinstance(module, Linear) and above < layer_depth(f"{name}.") < math.inf:
            module.adapter = LowRank(module.d_in, module.d_out, rank).to(module.weight)


def is_adapted(model: nn.Module) -> bool:
    """True if it has adapters."""
    return any(PART in name for name, _ in model.named_parameters())


@torch.no_grad()
def merged(model: nn.Module) -> dict[str, Tensor]:
    """The state dict of the model without adapters that computes the same."""
    tensors = {name: tensor for name, tensor in model.state_dict().items() if PART not in name}
    for name, module in model.named_modules():
        if isinstance(module, Linear) and module.adapter is not None:
            tensors[f"{name}.weight"] = module.weight + module.adapter.delta
    return tensors
