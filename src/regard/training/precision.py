"""Mixed precision: weights, moments and sums are float32, matrix products may be bfloat16."""

from contextlib import AbstractContextManager, nullcontext

import torch

from regard.training.config import TrainConfig
from regard.training.machine import has_bfloat16

MIN_WIDTH = 128
"""Smallest d_model for bfloat16; narrower models gain less than the conversions cost."""


def uses_bfloat16(plan: TrainConfig, device: torch.device, d_model: int) -> bool:
    """True if matrix products are computed in bfloat16; it depends on the hardware, not on timing."""
    if plan.precision == "auto":
        return d_model >= MIN_WIDTH and has_bfloat16(device)
    return plan.precision == "bfloat16"


def autocast(device: torch.device, *, bfloat16: bool) -> AbstractContextManager[object]:
    """Context in which matrix products are computed in bfloat16, if so wanted."""
    return torch.autocast(device.type, torch.bfloat16) if bfloat16 else nullcontext()
