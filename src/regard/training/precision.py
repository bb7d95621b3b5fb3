"""How precisely a step computes: weights, moments and sums are single, products may be bfloat16."""

from contextlib import AbstractContextManager, nullcontext

import torch

from regard.training.config import TrainConfig


def products(plan: TrainConfig, device: torch.device) -> AbstractContextManager[object]:
    """In here matrix products are made as precisely as the plan says."""
    if plan.precision == "bfloat16" or (plan.precision == "auto" and _has_units(device)):
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


def _has_units(device: torch.device) -> bool:
    """Processors without them emulate bfloat16, several times slower than single precision."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
