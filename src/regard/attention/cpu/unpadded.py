"""A batch without its padding: the real positions of all rows, laid end to end as one row.

Maps, norms and dropout work position by position; on padding they would only cost time. Attention alone must
know which row a position belongs to: it pads the projections, and gathers its output again.
"""

from typing import Any

import torch
from torch import Tensor

from regard.attention.cpu import enabled

MAX_REAL_SHARE = 0.95
"""The share of real positions up to which leaving out the padding saves more than moving rows costs."""


class Unpadded:
    """The layout of a batch of B rows of T positions, of which the first `lengths_B` are real: N in all."""

    def __init__(self, lengths_B: Tensor, max_length: int) -> None:
        self.shape = (len(lengths_B), max_length)
        real_BT = torch.arange(max_length, device=lengths_B.device) < lengths_B[:, None]
        self.real_N = real_BT.flatten().nonzero().squeeze(1)

    @classmethod
    def of(cls, lengths_B: Tensor, max_length: int) -> "Unpadded | None":
        """A layout, or None where it does not pay or an accelerator would have to wait for the number N."""
        if not enabled() or lengths_B.device.type != "cpu" or torch.compiler.is_compiling():
            return None
        share = float(lengths_B.sum()) / (len(lengths_B) * max_length)
        return cls(lengths_B, max_length) if share < MAX_REAL_SHARE else None

    def gather(self, x_BTX: Tensor) -> Tensor:
        """x_1NX, the real positions of x_BTX or x_BT."""
        x_1NX: Tensor = _Gather.apply(x_BTX.flatten(0, 1), self.real_N)  # type: ignore[no-untyped-call]
        return x_1NX[None]

    def pad(self, x_1NX: Tensor) -> Tensor:
        """x_BTX, zero at padding."""
        n_positions = self.shape[0] * self.shape[1]
        x_BTX: Tensor = _Pad.apply(x_1NX[0], self.real_N, n_positions)  # type: ignore[no-untyped-call]
        return torch.unflatten(x_BTX, 0, self.shape)


class _Gather(torch.autograd.Function):
    """index_select whose gradient is `_Pad`, and back; torch's own would add, though none collide."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, real_N: Tensor) -> Tensor:
        ctx.save_for_backward(real_N)
        ctx.n_positions = len(x)
        return x.index_select(0, real_N)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        pad: Tensor = _Pad.apply(grad, *ctx.saved_tensors, ctx.n_positions)  # type: ignore[no-untyped-call]
        return pad, None


class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_N: Tensor, real_N: Tensor, n_positions: int) -> Tensor:
        ctx.save_for_backward(real_N)
        return x_N.new_zeros(n_positions, *x_N.shape[1:]).index_copy_(0, real_N, x_N)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        gathered: Tensor = _Gather.apply(grad, *ctx.saved_tensors)  # type: ignore[no-untyped-call]
        return gathered, None, None
