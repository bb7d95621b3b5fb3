"""Exponential moving average of the weights, which is then scored and kept instead of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


class Ema:
    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = model, decay
        self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    def update(self, step: int) -> None:
        """Move towards the current weights, faster in early steps, to forget the random start."""
        decay = min(self.decay, (1 + step) / (10 + step))
        current = self.model.state_dict()
        floating = [name for name, tensor in current.items() if tensor.is_floating_point()]
        torch._foreach_lerp_(
            [self.weights[name] for name in floating], [current[name] for name in floating], 1 - decay
        )

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Context in which the model has the averaged weights."""
        trained = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        self.model.load_state_dict(self.weights)
        try:
            yield
        finally:
            self.model.load_state_dict(trained)
