"""Logits of a few rows at a time, with the same matrix over and over, as a search asks for them.

BLAS reorders a matrix for every product, which takes longer than the product of a few rows. oneDNN accepts
one that was reordered before: that is done once a search, so that no change of the weights goes unseen.
Elsewhere (another device or precision, gradients, a graph to export) it is F.linear.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.layers.cpu import enabled

HAS_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")


class OutputProjection:
    """F.linear with a weight that is reordered at the first call and reused."""

    def __init__(self, weight_VD: Tensor, bias_V: Tensor | None = None) -> None:
        self.weight_VD, self.bias_V = weight_VD, bias_V
        self._reordered: Tensor | None = None

    def __call__(self, hidden_ND: Tensor) -> Tensor:
        if not self._can_reorder(hidden_ND):
            return F.linear(hidden_ND, self.weight_VD, self.bias_V)
        if self._reordered is None:
            self._reordered = torch.ops.mkldnn._reorder_linear_weight(self.weight_VD, len(hidden_ND))
        logits_NV: Tensor = torch.ops.mkldnn._linear_pointwise(
            hidden_ND, self._reordered, self.bias_V, "none", [], ""
        )
        return logits_NV

    def _can_reorder(self, hidden_ND: Tensor) -> bool:
        return (
            enabled()
            and hidden_ND.device.type == "cpu"
            and hidden_ND.dtype == self.weight_VD.dtype == torch.float32
            and not torch.is_grad_enabled()
            and not torch.compiler.is_compiling()
            and HAS_ONEDNN
        )
