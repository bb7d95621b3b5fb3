"""The same function written out: keys and values for every head, a bias for every map.

Grouped heads become as many equal ones, an absent bias becomes zeros; engines that know only the plain
Transformer then fit, at the price of a few more numbers.
"""

from typing import TypeVar

import torch
from torch import Tensor, nn

from regard.models import GPTConfig, TransformerConfig

C = TypeVar("C", TransformerConfig, GPTConfig)
DENSE = tuple(f".{name}" for name in ("q", "k", "v", "o", "inner", "gate", "outer"))


def written_out(model: nn.Module, config: C) -> tuple[dict[str, Tensor], C]:
    """Copies on the CPU, as whoever gets them may round them in place; the config describes them."""
    own = {
        name: tensor.detach().to("cpu", torch.float32, copy=True)
        for name, tensor in model.state_dict().items()
    }
    group = config.n_heads // (config.n_kv_heads or config.n_heads)
    plain: dict[str, Tensor] = {}
    for name, tensor in own.items():
        owner = name.rpartition(".")[0]
        plain[name] = _repeated(tensor, group, config) if owner.endswith((".k", ".v")) else tensor
        if not config.bias and owner.endswith(DENSE):
            plain[f"{owner}.bias"] = plain[name].new_zeros(plain[name].shape[0])
    return plain, config.model_copy(update={"n_kv_heads": None, "bias": True})


def _repeated(tensor: Tensor, group: int, config: TransformerConfig | GPTConfig) -> Tensor:
    """Each key or value head once for every query head that it serves."""
    heads = torch.unflatten(tensor, 0, (config.n_heads // group, -1))
    return heads.repeat_interleave(group, dim=0).flatten(0, 1)
