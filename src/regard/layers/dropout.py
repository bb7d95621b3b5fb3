"""Dropout (Srivastava et al. 2014)."""

from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers import cpu
from regard.layers.cpu.dropout import drop_by_bits


class Dropout(nn.Module):
    """Zeros elements with probability p in training and scales the others by 1 / (1 − p)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return x
        if cpu.enabled() and x.device.type == "cpu":
            return drop_by_bits(x, self.p)
        return F.dropout(x, self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"
