"""A moving average of the weights: smoother than any of them, and what is then scored and kept."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


class Ema:
    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = model, decay
        self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    def update(self, step: int) -> None:
        """One step nearer to the weights; early steps are longer, or the beginning would stay for long."""
        decay = min(self.decay, (1 + step) / (10 + step))
        now = self.model.state_dict()
        floating = [name for name, tensor in now.items() if tensor.is_floating_point()]
        torch._foreach_lerp_(
            [self.weights[name] for name in floating], [now[name] for name in floating], 1 - decay
        )

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside, the model has the averaged weights."""
        own = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        self.model.load_state_dict(self.weights)
        try:
            yield
        finally:
            self.model.load_state_dict(own)
