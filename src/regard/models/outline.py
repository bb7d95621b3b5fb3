"""A model's names and shapes, without the memory: to be measured, described, or filled from a file."""

from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from regard.models import ModelConfig
from regard.models.dims import Dims


def outline(config: ModelConfig, dims: Dims) -> nn.Module:
    with torch.device("meta"), _Unfilled():
        model: nn.Module = config.build(dims)
    return model


class _Unfilled(TorchFunctionMode):
    """No first weights for tensors without memory: `normal_` on them would load half of torch (1.5 s)."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return kwargs["tensor"] if func is nn.init.normal_ else func(*args, **(kwargs or {}))
