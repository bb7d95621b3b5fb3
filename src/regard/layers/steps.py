"""Steps of series as models take them: on one scale, without gaps, cut into patches."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.feedforward import FeedForward
from regard.linear import Linear

EPS = 1e-5
"""Added to a variance, as in RevIN."""


def scaled(steps_BTC: Tensor, mean: Sequence[float], deviation: Sequence[float]) -> Tensor:
    """Steps with mean 0 and deviation 1 by channel, as measured on the training data."""
    return (steps_BTC - steps_BTC.new_tensor(mean)) / steps_BTC.new_tensor(deviation)


class Instance(NamedTuple):
    """Mean and deviation of each series and channel by itself (RevIN, Kim et al. 2022, without scales)."""

    mean_B1C: Tensor
    deviation_B1C: Tensor

    @classmethod
    def of(cls, steps_BTC: Tensor) -> "Instance":
        """Missing values, which are NaN, count for nothing."""
        known_BTC = ~steps_BTC.isnan()
        n_B1C = known_BTC.sum(1, keepdim=True).clamp(min=1)
        mean_B1C = steps_BTC.nan_to_num(0.0).sum(1, keepdim=True) / n_B1C
        apart_BTC = torch.where(known_BTC, steps_BTC - mean_B1C, 0.0)
        return cls(mean_B1C, ((apart_BTC**2).sum(1, keepdim=True) / n_B1C + EPS).sqrt())

    def normalise(self, steps_BTC: Tensor) -> Tensor:
        """Mean 0 and deviation 1; what is missing is taken for the mean."""
        return ((steps_BTC - self.mean_B1C) / self.deviation_B1C).nan_to_num(0.0)

    def restore(self, forecast_BCYJ: Tensor) -> Tensor:
        mean_BC11, deviation_BC11 = (each.transpose(1, 2)[..., None] for each in self)
        return forecast_BCYJ * deviation_BC11 + mean_BC11


class Known(nn.Module):
    """What is known ahead of time, on one scale; what is missing of it is taken for the mean."""

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        super().__init__()
        self.mean, self.deviation = mean, deviation

    def normalise(self, known_BTK: Tensor) -> Tensor:
        return scaled(known_BTK, self.mean, self.deviation).nan_to_num(0.0)


class Prefetch(Known):
    """What is known of each step of the future → what it adds to the forecast of that step."""

    def __init__(self, mean: Sequence[float], deviation: Sequence[float], n_out: int) -> None:
        super().__init__(mean, deviation)
        n = len(mean)
        self.network = FeedForward(n, INNER * n, "gelu", 0.0, bias=True)
        self.output = Linear(n, n_out)

    def forward(self, known_BTK: Tensor, horizon: int, n_channels: int) -> Tensor:
        """added_BCYJ, of what is known of the past and the horizon."""
        known_BYK = self.normalise(known_BTK)[:, -horizon:]
        added_BYO: Tensor = self.output(known_BYK + self.network(known_BYK))
        return added_BYO.view(*added_BYO.shape[:2], n_channels, -1).transpose(1, 2)


INNER = 4
"""Times the width of what is known that the network for it has inside."""


def n_patches(n_steps: int, patch: int, stride: int) -> int:
    """How many patches cover so many steps; the last may be filled up."""
    return -(-max(n_steps - patch, 0) // stride) + 1


def patches(steps_RCT: Tensor, patch: int, stride: int) -> Tensor:
    """patches_RNP: all channels of each patch side by side; behind the end there are zeros."""
    n_steps = steps_RCT.shape[-1]
    n = n_patches(n_steps, patch, stride)
    padded_RCT = F.pad(steps_RCT, (0, (n - 1) * stride + patch - n_steps))
    return padded_RCT.unfold(-1, patch, stride).transpose(1, 2).flatten(2)


def last_known(steps_BTC: Tensor) -> Tensor:
    """The last value of each channel that is not missing, 0 where none is: last_B1C."""
    every_1T1 = torch.arange(steps_BTC.shape[1], device=steps_BTC.device)[None, :, None]
    last_B1C = (every_1T1 * ~steps_BTC.isnan()).max(1, keepdim=True).values
    return steps_BTC.gather(1, last_B1C).nan_to_num(0.0)
