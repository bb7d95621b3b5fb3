"""Muon (Jordan et al. 2024): a matrix moves by its momentum made orthogonal, all else as in AdamW.

So every direction of a matrix moves equally far, the rare ones too. A step is as long as Adam's would be
(0.2 · √longer side, Liu et al. 2025): one learning rate serves both. Unlike the authors' and torch's, the
products are in bfloat16 only where those of the model are, and equal shapes go together.
"""

import math
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from regard.linear import Linear

MOMENTUM = 0.95
QUINTIC = (3.4445, -4.7750, 2.0315)
"""a·x + b·x³ + c·x⁵, which takes any x in (0, 1] near 1 within the rounds; the authors' choice."""
ROUNDS = 5


class Muon(torch.optim.AdamW):
    """Embeddings, the output and what is no matrix have Adam's moments; matrices have one momentum."""

    def __init__(self, model: nn.Module, *, narrow: bool = False, **adam: Any) -> None:
        self.narrow = narrow
        self.matrices = {
            module.weight
            for name, module in model.named_modules()
            if isinstance(module, Linear) and name != "output"
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
                pushes = torch.stack([self._pushed(matrix) for matrix in matrices])
                moves = orthogonal(pushes.bfloat16() if self.narrow else pushes).to(pushes.dtype)
                length = 0.2 * math.sqrt(max(shape)) * group["lr"]
                torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(matrices, list(moves), alpha=-length)

    def _pushed(self, matrix: nn.Parameter) -> Tensor:
        """Nesterov's momentum: where the gradient will have taken it."""
        state, gradient = self.state[matrix], matrix.grad
        assert gradient is not None
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(matrix)
        momentum: Tensor = state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        return gradient.lerp(momentum, MOMENTUM)


def orthogonal(x_NDF: Tensor) -> Tensor:
    """The same singular vectors with all singular values near 1, by products alone (Newton and Schulz)."""
    if x_NDF.shape[1] > x_NDF.shape[2]:
        return orthogonal(x_NDF.mT).mT
    a, b, c = QUINTIC
    x_NDF = x_NDF / x_NDF.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    for _ in range(ROUNDS):
        square_NDD = x_NDF @ x_NDF.mT
        both_NDD = torch.baddbmm(square_NDD, square_NDD, square_NDD, beta=b, alpha=c)
        x_NDF = torch.baddbmm(x_NDF, both_NDD, x_NDF, beta=a)
    return x_NDF


def _shape(matrix: Tensor) -> tuple[int, ...]:
    return tuple(matrix.shape)


def _has_gradient(parameter: Tensor) -> bool:
    return parameter.grad is not None
