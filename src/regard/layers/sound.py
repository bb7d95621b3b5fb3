"""From log-mel frames to what speech encoders begin with: normalised, subsampled by convolutions, seen ahead.

Every state depends on a fixed stretch of frames, so that a sound can be read in pieces: a state of 40 ms has
seen the four frames that it is made of and three before them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.linear import Linear

SUBSAMPLING = 4
"""Frames of a state."""


class NormaliseFrames(nn.Module):
    """Brings every band to mean 0 and deviation 1, as measured on the training data."""

    mean_M: Tensor
    deviation_M: Tensor

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean_M", torch.tensor(mean))
        self.register_buffer("deviation_M", torch.tensor(deviation))

    def forward(self, frames_BTM: Tensor) -> Tensor:
        normal_BTM: Tensor = (frames_BTM - self.mean_M) / self.deviation_M
        return normal_BTM


class Context(NamedTuple):
    """What convolutions need of the frames before: the last one, of both layers."""

    first_B1TM: Tensor
    second_BCTM: Tensor


class Subsample(nn.Module):
    """Two convolutions of 3 × 3 with stride 2, and a map of all bands of each fourth frame to a state."""

    def __init__(self, n_mels: int, n_channels: int, d_model: int) -> None:
        super().__init__()
        self.n_mels, self.n_channels = n_mels, n_channels
        self.first = FrameConvolution(1, n_channels)
        self.second = FrameConvolution(n_channels, n_channels)
        self.project = Linear(n_channels * (-(-n_mels // SUBSAMPLING)), d_model)

    def start(self, n_batch: int, like: Tensor) -> Context:
        """The context of a beginning: silence, which is what convolutions are padded with."""
        n_bands = -(-self.n_mels // 2)
        first_B1TM = like.new_zeros(n_batch, 1, 1, self.n_mels)
        return Context(first_B1TM, like.new_zeros(n_batch, self.n_channels, 1, n_bands))

    def forward(self, frames_BTM: Tensor, context: Context) -> tuple[Tensor, Context]:
        """states_BTD of as many frames as make whole states, and the context of the next ones."""
        n_frames = frames_BTM.shape[1] // SUBSAMPLING * SUBSAMPLING
        if not n_frames:
            return frames_BTM.new_zeros(len(frames_BTM), 0, self.project.d_out), context
        x_B1TM = torch.cat([context.first_B1TM, frames_BTM[:, None, :n_frames]], dim=2)
        y_BCTM = F.relu(self.first(x_B1TM))
        y_BCTM = torch.cat([context.second_BCTM, y_BCTM], dim=2)
        z_BCTM = F.relu(self.second(y_BCTM))
        states_BTD: Tensor = self.project(z_BCTM.transpose(1, 2).flatten(2))
        return states_BTD, Context(x_B1TM[:, :, -1:], y_BCTM[:, :, -1:])


class FrameConvolution(nn.Conv2d):
    """A convolution of 3 × 3 that halves time and bands, padded in bands alone: σ² = 2 / inputs."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__(d_in, d_out, 3, 2, padding=(0, 1))

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=(2 / self.weight[0].numel()) ** 0.5)
        assert self.bias is not None
        nn.init.zeros_(self.bias)


class LookAhead(nn.Module):
    """Adds to each state a weighted sum of the next ones, channel by channel (Wang et al. 2016).

    It is the only place where an encoder that streams sees beyond its chunk.
    """

    def __init__(self, n_ahead: int, d_model: int) -> None:
        super().__init__()
        self.n_ahead = n_ahead
        self.weight_DA = nn.Parameter(torch.empty(d_model, n_ahead))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight_DA, std=self.n_ahead**-0.5)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """One state for each but the last `n_ahead`, whose future is not there."""
        n_out = x_BTD.shape[1] - self.n_ahead
        seen_BTD = x_BTD[:, :n_out]
        for ahead, weight_D in enumerate(self.weight_DA.unbind(1), 1):
            seen_BTD = seen_BTD + weight_D * x_BTD[:, ahead : ahead + n_out]
        return seen_BTD
