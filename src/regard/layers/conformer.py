"""A Conformer layer (Gulati et al. 2020): attention and a convolution between two half steps of feed-forward.

Two differences from the paper, so that it streams and answers are the same in any batch: the convolution
looks back only, and LayerNorm stands in the place of BatchNorm.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import FULL, Growing, Mask
from regard.layers.block import BlockConfig
from regard.layers.dropout import Dropout
from regard.layers.feedforward import FeedForward
from regard.linear import Linear


class ConformerCache(NamedTuple):
    """What a layer needs of the states before."""

    attention: Growing
    convolved_BTD: Tensor


class Conformer(nn.Module):
    def __init__(self, config: BlockConfig, kernel: int) -> None:
        super().__init__()
        d_model, settings = config.d_model, (config.activation, config.inner_dropout)
        self.before = FeedForward(d_model, config.d_ff, *settings, bias=config.bias)
        self.self = config.attention()
        self.convolve = CausalConvolution(d_model, kernel)
        self.after = FeedForward(d_model, config.d_ff, *settings, bias=config.bias)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model, config.norm_eps) for _ in range(4))
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        x_BTD: Tensor,
        *,
        mask: Mask = FULL,
        positions_BT: Tensor | None = None,
        past: ConformerCache | None = None,
    ) -> tuple[Tensor, ConformerCache]:
        before, attend, convolve, after = self.norms
        x_BTD = x_BTD + 0.5 * self.dropout(self.before(before(x_BTD)))
        attended, cache = self.self.self_attend(
            attend(x_BTD), past and past.attention, mask=mask, positions_BT=positions_BT
        )
        assert isinstance(cache, Growing)
        x_BTD = x_BTD + self.dropout(attended)
        convolved, tail_BTD = self.convolve(convolve(x_BTD), past and past.convolved_BTD)
        x_BTD = x_BTD + self.dropout(convolved)
        x_BTD = x_BTD + 0.5 * self.dropout(self.after(after(x_BTD)))
        return x_BTD, ConformerCache(cache, tail_BTD)


class CausalConvolution(nn.Module):
    """A gated convolution of each channel over the last `kernel` states."""

    def __init__(self, d_model: int, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.enter = Linear(d_model, 2 * d_model)
        self.weight_DK = nn.Parameter(torch.empty(d_model, kernel))
        self.norm = nn.LayerNorm(d_model)
        self.leave = Linear(d_model, d_model)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.weight_DK, -(self.kernel**-0.5), self.kernel**-0.5)

    def forward(self, x_BTD: Tensor, tail_BTD: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The output, and the inputs that the next states need."""
        gated_BTD = F.glu(self.enter(x_BTD), dim=-1)
        if tail_BTD is None:
            tail_BTD = gated_BTD.new_zeros(gated_BTD.shape[0], self.kernel - 1, gated_BTD.shape[2])
        all_BTD = torch.cat([tail_BTD, gated_BTD], dim=1)
        convolved_BDT = F.conv1d(all_BTD.transpose(1, 2), self.weight_DK[:, None], groups=len(self.weight_DK))
        out_BTD: Tensor = self.leave(F.silu(self.norm(convolved_BDT.transpose(1, 2))))
        return out_BTD, all_BTD[:, all_BTD.shape[1] - self.kernel + 1 :]
