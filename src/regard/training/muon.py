"""Muon (Jordan et al. 2024): matrices are updated by their orthogonalized momentum, all else as in AdamW.

Every direction of a matrix thus moves equally far, the rare ones too; a convolution is a matrix with a row
for each output. Updates are scaled to Adam's size (0.2 · √longer side, Liu et al. 2025), so one learning rate
serves both. Unlike the authors' and torch's, it uses bfloat16 only where the model does, and processes
matrices of equal shape as one batch.
"""

import math
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from regard.linear import Convolution, Linear

MOMENTUM = 0.95
QUINTIC = (3.4445, -4.7750, 2.0315)
"""Coefficients of a·x + b·x³ + c·x⁵, which brings any x in (0, 1] near 1 when iterated (the authors')."""
ITERATIONS = 5


class Muon(torch.optim.AdamW):
    """Muon for linear maps and convolutions; AdamW for embeddings, the output layer and vectors."""

    def __init__(self, model: nn.Module, *, bfloat16: bool = False, **adam: Any) -> None:
        self.bfloat16 = bfloat16
        self.matrices = {
            module.weight
            for name, module in model.named_modules()
            if isinstance(module, Linear | Convolution) and name != "output"
        }
        parameters = list(model.parameters())
        super().__init__([parameter for parameter in parameters if parameter not in self.matrices], **adam)
        in_order = [parameter for parameter in parameters if parameter in self.matrices]
        if in_order:
            self.add_param_group({"params": sorted(in_order, key=_shape)})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        others, *groups = self.param_groups
        self.param_groups = [others]
        super().step()
        self.param_groups = [others, *groups]
        for group in groups:
            for shape, alike in groupby(filter(_has_gradient, group["params"]), key=_shape):
                matrices = list(alike)
                momenta = torch.stack([self._nesterov(matrix).flatten(1) for matrix in matrices])
                updates = orthogonalize(momenta.bfloat16() if self.bfloat16 else momenta).to(momenta.dtype)
                length = 0.2 * math.sqrt(max(momenta.shape[1:])) * group["lr"]
                torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(matrices, list(updates.view(-1, *shape)), alpha=-length)

    def _nesterov(self, matrix: nn.Parameter) -> Tensor:
        """Update the momentum; returns Nesterov's look-ahead of it."""
        state, gradient = self.state[matrix], matrix.grad
        assert gradient is not None
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(matrix)
        momentum: Tensor = state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        return gradient.lerp(momentum, MOMENTUM)


def orthogonalize(x_NDF: Tensor) -> Tensor:
    """Set all singular values near 1, keeping the singular vectors (Newton-Schulz iteration)."""
    if x_NDF.shape[1] > x_NDF.shape[2]:
        return orthogonalize(x_NDF.mT).mT
    a, b, c = QUINTIC
    x_NDF = x_NDF / x_NDF.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    for _ in range(ITERATIONS):
        gram_NDD = x_NDF @ x_NDF.mT
        polynomial_NDD = torch.baddbmm(gram_NDD, gram_NDD, gram_NDD, beta=b, alpha=c)
        x_NDF = torch.baddbmm(x_NDF, polynomial_NDD, x_NDF, beta=a)
    return x_NDF


def _shape(matrix: Tensor) -> tuple[int, ...]:
    return tuple(matrix.shape)


def _has_gradient(parameter: Tensor) -> bool:
    return parameter.grad is not None
