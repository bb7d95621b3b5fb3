"""The dense maps of the project: a weight matrix is a `Linear`, a kernel over a plane a `Convolution`.

One place for whatever later concerns all of them (low-rank adapters, int8, spectral norm).
Weights are laid out as in `torch.nn.Linear`, so foreign checkpoints fit.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class LowRank(nn.Module):
    """A low-rank adapter: x Aᵀ Bᵀ, added to a product. B starts at zero, so at first nothing changes."""

    def __init__(self, d_in: int, d_out: int, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.empty(rank, d_in))
        self.up = nn.Parameter(torch.empty(d_out, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.down, std=self.down.shape[1] ** -0.5)
        nn.init.zeros_(self.up)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(F.linear(x, self.down), self.up)

    @property
    def delta(self) -> Tensor:
        return self.up @ self.down


class Linear(nn.Module):
    """y = x Wᵀ + b, Glorot-uniform at the start (Vaswani et al. follow Glorot & Bengio 2010)."""

    def __init__(self, d_in: int, d_out: int, *, bias: bool = True) -> None:
        super().__init__()
        self.d_in, self.d_out = d_in, d_out
        self.weight = nn.Parameter(torch.empty(d_out, d_in))
        self.bias = nn.Parameter(torch.empty(d_out)) if bias else None
        self.adapter: LowRank | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = math.sqrt(6 / (self.d_in + self.d_out))
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.weight, self.bias)
        return y if self.adapter is None else y + self.adapter(x)

    @property
    def is_bare(self) -> bool:
        """True if weight and bias are all: no adapter, no hook, no other forward."""
        hooks = (
            self._forward_pre_hooks,
            self._forward_hooks,
            self._backward_pre_hooks,
            self._backward_hooks,
        )
        changed = type(self) is not Linear or "forward" in vars(self)
        return self.adapter is None and not changed and not any(hooks)

    def extra_repr(self) -> str:
        return f"{self.d_in} → {self.d_out}"


class Convolution(nn.Conv2d):
    """A convolution that keeps the sides, before ReLU or after it: σ² = 2 / inputs (He et al. 2015)."""

    def __init__(self, d_in: int, d_out: int, size: int, *, stride: int = 1) -> None:
        super().__init__(d_in, d_out, size, stride, padding=size // 2, bias=False)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=(2 / self.weight[0].numel()) ** 0.5)


def concat_weights(maps: Sequence[Linear]) -> tuple[Tensor, Tensor | None]:
    """The weight and bias of one product that gives the outputs of these bare maps side by side."""
    if len(maps) == 1:
        return maps[0].weight, maps[0].bias
    weights: list[Tensor] = [part.weight for part in maps]
    biases: list[Tensor] = [part.bias for part in maps if part.bias is not None]
    return torch.cat(weights), torch.cat(biases) if biases else None
