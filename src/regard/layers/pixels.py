"""From the bytes of pictures to what encoders begin with: normalised, cut into patches, or convolved."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.linear import Convolution, Linear


class Normalise(nn.Module):
    """Brings every channel to mean 0 and deviation 1, as measured on the training data."""

    mean_C: Tensor
    deviation_C: Tensor

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean_C", torch.tensor(mean))
        self.register_buffer("deviation_C", torch.tensor(deviation))

    def forward(self, pixels_BYXC: Tensor) -> Tensor:
        normal_BYXC: Tensor = (pixels_BYXC - self.mean_C) / self.deviation_C
        return normal_BYXC


class Patches(nn.Module):
    """One linear map of every patch, in reading order (Dosovitskiy et al. 2021)."""

    def __init__(self, patch: int, n_channels: int, d_model: int) -> None:
        super().__init__()
        self.patch = patch
        self.project = Linear(patch * patch * n_channels, d_model)

    def forward(self, x_BYXC: Tensor) -> Tensor:
        n_batch, n_rows, n_columns, n_channels = x_BYXC.shape
        p = self.patch
        cut = x_BYXC.view(n_batch, n_rows // p, p, n_columns // p, p, n_channels)
        states_BPD: Tensor = self.project(cut.transpose(2, 3).reshape(n_batch, -1, p * p * n_channels))
        return states_BPD


class ConvStem(nn.Module):
    """Convolutions of 3 × 3 with ReLU, the last of each scale halved by a maximum (Hassani et al. 2021).

    There are as many states as there would be patches, but each has seen what lies around it.
    """

    def __init__(self, patch: int, n_channels: int, d_stem: int, d_model: int, n_convolutions: int) -> None:
        super().__init__()
        n_scales = patch.bit_length() - 1
        widths = [*(min(d_stem << n, d_model) for n in range(n_scales - 1)), d_model]
        inner = [width for width in widths for _ in range(n_convolutions)]
        self.layers = nn.ModuleList(
            Convolution(d_in, d_out, 3) for d_in, d_out in pairwise([n_channels, *inner])
        )
        self.n_convolutions = n_convolutions

    def forward(self, x_BYXC: Tensor) -> Tensor:
        x_BCYX = channels_first(x_BYXC)
        for number, layer in enumerate(self.layers, 1):
            x_BCYX = layer(x_BCYX)
            if number % self.n_convolutions == 0:
                x_BCYX = F.max_pool2d(x_BCYX, 3, 2, 1)
            x_BCYX = F.relu(x_BCYX)
        return in_reading_order(x_BCYX)


def channels_first(x_BYXC: Tensor) -> Tensor:
    """The shape that convolutions take; in memory channels still lie beside each other."""
    return x_BYXC.permute(0, 3, 1, 2)


def in_reading_order(x_BCYX: Tensor) -> Tensor:
    """The states of a plane as those of a sequence."""
    return x_BCYX.flatten(2).transpose(1, 2)
