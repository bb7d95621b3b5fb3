"""The position-wise network: FFN(z) = act(z W₁ + b₁) W₂ + b₂, or its gated form SwiGLU."""

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.dropout import Dropout
from regard.linear import Linear

Activation = Literal["relu", "gelu", "gelu_tanh", "swiglu"]


class FeedForward(nn.Module):
    def __init__(
        self, d_model: int, d_ff: int, activation: Activation, dropout: float, *, bias: bool
    ) -> None:
        super().__init__()
        self.activation = activation
        self.inner = Linear(d_model, d_ff, bias=bias)
        self.gate = Linear(d_model, d_ff, bias=bias) if activation == "swiglu" else None
        self.outer = Linear(d_ff, d_model, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.outer(self.dropout(self._inner(x)))
        return out

    def _inner(self, x: Tensor) -> Tensor:
        return self.activate(self.inner(x), None if self.gate is None else self.gate(x))

    def activate(self, inner: Tensor, gate: Tensor | None = None) -> Tensor:
        return activated(inner, self.activation) if gate is None else F.silu(gate) * inner


def activated(x: Tensor, activation: Activation) -> Tensor:
    """An activation that needs no gate."""
    if activation == "relu":
        return F.relu(x)
    return F.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")
