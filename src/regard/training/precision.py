"""How precisely a step computes: weights, moments and sums are single, products may be bfloat16."""

from contextlib import AbstractContextManager, nullcontext

import torch

from regard.training.config import TrainConfig
from regard.training.machine import has_bfloat16

WIDE_ENOUGH = 128
"""Narrower models gain less from quicker products than the changes between precisions cost."""


def is_narrow(plan: TrainConfig, device: torch.device, d_model: int) -> bool:
    """Whether products are made in bfloat16. What decides is the machine, not its mood: no clock is asked."""
    if plan.precision == "auto":
        return d_model >= WIDE_ENOUGH and has_bfloat16(device)
    return plan.precision == "bfloat16"


def products(device: torch.device, *, narrow: bool) -> AbstractContextManager[object]:
    """In here matrix products are made in bfloat16, if they are to be narrow."""
    return torch.autocast(device.type, torch.bfloat16) if narrow else nullcontext()
