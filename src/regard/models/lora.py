"""Low-rank adaptation (Hu et al. 2021): the encoder stays, and small changes beside its matrices learn.

Every matrix of every layer has one (the paper: of attention only), at the scale of its own initial values. At
the end they are added to the matrices, so that what is saved is a model like any other.
"""

import math

import torch
from torch import Tensor, nn

from regard.linear import Linear, LowRank
from regard.models.layer_depth import layer_depth

PART = ".adapter."


def adapt(model: nn.Module, rank: int, above: int = 0) -> None:
    """Freeze the encoder, and put changes of this rank into its layers above the first so many."""
    for name, parameter in model.named_parameters():
        if layer_depth(name) < math.inf:
            parameter.requires_grad_(False)
    for name, module in model.named_modules():
        if isinstance(module, Linear) and above < layer_depth(f"{name}.") < math.inf:
            module.adapter = LowRank(module.d_in, module.d_out, rank).to(module.weight)


@torch.no_grad()
def merged(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of the model without changes that computes the same."""
    tensors = {name: tensor for name, tensor in model.state_dict().items() if PART not in name}
    for name, module in model.named_modules():
        if isinstance(module, Linear) and module.adapter is not None:
            tensors[f"{name}.weight"] = module.weight + module.adapter.delta
    return tensors
