"""NLinear and DLinear (Zeng et al. 2023): one linear map from the past to the horizon, for all channels.

NLinear takes the last value off before the map and adds it again after; DLinear maps the trend, which is a
moving average, and what remains by themselves. They shame weak Transformers.

A linear map gives every window a band of nearly one width. So a part of each quantile is the deviation of the
window by itself: where the past is restless, the band is wide.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.fields.axis import Axis
from regard.layers.inputs import Inputs
from regard.layers.steps import Instance, last_known, scaled
from regard.linear import Linear
from regard.models.forecaster import ahead
from regard.models.settings import ModelSettings
from regard.models.widths import Widths

UNITS = 48
"""Groups of steps that the past is shown in, about."""


class LinearForecasterConfig(ModelSettings):
    reads: ClassVar[str] = "steps"

    @property
    def d_model(self) -> int:
        """Width that a schedule may ask for."""
        return 1

    def positions(self, axis: Axis) -> Axis:
        """Runs of steps of one length, counted from the end."""
        return axis.runs(-(-len(axis) // UNITS), "segment", at_end=True)


class NLinearConfig(LinearForecasterConfig):
    kind: Literal["nlinear"] = "nlinear"

    def build(self, widths: Widths) -> "NLinear":
        return NLinear(self, widths)

    def __str__(self) -> str:
        return "NLinear forecaster"


class DLinearConfig(LinearForecasterConfig):
    kind: Literal["dlinear"] = "dlinear"
    kernel: int = Field(25, ge=1, description="steps of the moving average, an odd number")

    def build(self, widths: Widths) -> "DLinear":
        return DLinear(self, widths)

    def __str__(self) -> str:
        return f"DLinear forecaster, trend of {self.kernel} steps"


class LinearForecaster(nn.Module):
    """Linear forecaster: parts of the past, a map for each, and what is known ahead of time."""

    def __init__(self, config: LinearForecasterConfig, widths: Widths, n_parts: int) -> None:
        super().__init__()
        width, target = widths.input, widths.target
        self.config = config
        self.mean, self.deviation, self.n_channels = width["mean"], width["deviation"], width["channels"]
        self.horizon, self.n_outputs = target["horizon"], 1 + target["quantiles"]
        n_out = self.horizon * self.n_outputs
        self.maps = nn.ModuleList(Linear(width["steps"], n_out) for _ in range(n_parts))
        self.spread_YQ = nn.Parameter(torch.empty(self.horizon, self.n_outputs - 1))
        self.ahead = ahead(widths)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.spread_YQ)

    def parts(self, x_BCT: Tensor, last_BC1: Tensor) -> tuple[Tensor, ...]:
        """Inputs of each map, and last what is added to the forecast."""
        raise NotImplementedError

    def forward(self, inputs: Inputs) -> Tensor:
        """forecast_BCYJ: the mean, then the quantiles, on the scale of the training data."""
        x_BTC = scaled(inputs["steps"], self.mean, self.deviation)
        *parts, added_BC1 = self._parts(x_BTC)
        forecast_BCO = torch.stack([part(x_BCT) for part, x_BCT in zip(self.maps, parts, strict=True)]).sum(0)
        forecast_BCYJ: Tensor = (forecast_BCO + added_BC1).view(
            *added_BC1.shape[:2], self.horizon, self.n_outputs
        )
        deviation_BC11 = Instance.of(x_BTC).deviation_B1C.transpose(1, 2)[..., None]
        forecast_BCYJ = forecast_BCYJ + F.pad(deviation_BC11 * self.spread_YQ, (1, 0))
        if self.ahead is None:
            return forecast_BCYJ
        added_BCYJ: Tensor = self.ahead(inputs["known"], self.horizon, self.n_channels)
        return forecast_BCYJ + added_BCYJ

    def _parts(self, x_BTC: Tensor) -> tuple[Tensor, ...]:
        last_B1C = last_known(x_BTC)
        x_BTC = torch.where(x_BTC.isnan(), last_B1C, x_BTC)
        return self.parts(x_BTC.transpose(1, 2), last_B1C.transpose(1, 2))

    def contributions(self, inputs: Inputs) -> Tensor:
        """shares_BCYN: what each run of steps adds to the mean forecast."""
        *parts, _ = self._parts(scaled(inputs["steps"], self.mean, self.deviation))
        n_steps = parts[0].shape[-1]
        size = -(-n_steps // UNITS)
        weights = [part.get_parameter("weight") for part in self.maps]
        each_BCYT = torch.stack(
            [
                x_BCT[:, :, None] * weight_OT.view(self.horizon, self.n_outputs, -1)[:, 0]
                for weight_OT, x_BCT in zip(weights, parts, strict=True)
            ]
        ).sum(0)
        runs_BCYNT = F.pad(each_BCYT, (-n_steps % size, 0)).view(*each_BCYT.shape[:3], -1, size)
        return runs_BCYNT.sum(-1)

    def positions(self, axis: Axis) -> Axis:
        return self.config.positions(axis)


class NLinear(LinearForecaster):
    def __init__(self, config: NLinearConfig, widths: Widths) -> None:
        super().__init__(config, widths, 1)

    def parts(self, x_BCT: Tensor, last_BC1: Tensor) -> tuple[Tensor, ...]:
        return x_BCT - last_BC1, last_BC1


class DLinear(LinearForecaster):
    def __init__(self, config: DLinearConfig, widths: Widths) -> None:
        super().__init__(config, widths, 2)
        self.kernel = config.kernel

    def parts(self, x_BCT: Tensor, last_BC1: Tensor) -> tuple[Tensor, ...]:
        before = (self.kernel - 1) // 2
        around_BCT = F.pad(x_BCT, (before, self.kernel - 1 - before), mode="replicate")
        trend_BCT = F.avg_pool1d(around_BCT, self.kernel, 1)
        return trend_BCT, x_BCT - trend_BCT, torch.zeros_like(last_BC1)
