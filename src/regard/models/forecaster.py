"""A forecaster: PatchTST over the past, and one linear map from all its patches to all steps of the horizon.

Each series is normalised by its own mean and deviation, and its forecast put back on their scale (RevIN, Kim
et al. 2022). What is known ahead of time is read with the past, and adds to each step of the forecast by a
small network of its own.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.fields.axis import Axis
from regard.layers.dropout import Dropout
from regard.layers.inputs import Inputs
from regard.layers.steps import Instance, Prefetch, n_patches, scaled
from regard.linear import Linear
from regard.models.encoders.series import PatchTSTConfig
from regard.models.settings import ModelSettings
from regard.models.widths import Widths


class ForecasterConfig(ModelSettings):
    kind: Literal["forecaster"] = "forecaster"
    encoder: PatchTSTConfig = PatchTSTConfig(channels="independent")
    instance_norm: bool = Field(True, description="normalise each series by its own mean and deviation")
    dropout: float = Field(0.0, ge=0, lt=1, description="before the last map")

    @property
    def reads(self) -> str:
        return self.encoder.reads

    @property
    def d_model(self) -> int:
        return self.encoder.d_model

    def build(self, widths: Widths) -> "Forecaster":
        return Forecaster(self, widths)

    def __str__(self) -> str:
        encoder = self.encoder
        size = f"d={encoder.d_model}, {encoder.n_layers} layers"
        return f"PatchTST forecaster, {size}, {encoder.channels} channels"


def ahead(widths: Widths) -> Prefetch | None:
    """The part of a forecaster for what is known ahead of time, if anything is."""
    width, n_outputs = widths.input, 1 + widths.target["quantiles"]
    if not width["known"]:
        return None
    return Prefetch(width["known_mean"], width["known_deviation"], width["channels"] * n_outputs)


class Forecaster(nn.Module):
    def __init__(self, config: ForecasterConfig, widths: Widths) -> None:
        super().__init__()
        width, target = widths.input, widths.target
        self.config = config
        self.mean, self.deviation, self.n_channels = width["mean"], width["deviation"], width["channels"]
        self.horizon, self.n_outputs = target["horizon"], 1 + target["quantiles"]
        self.encoder = config.encoder.build(width)
        n = n_patches(width["steps"], config.encoder.patch, config.encoder.stride)
        per_row = self.n_channels if self.encoder.mixed else 1
        self.dropout = Dropout(config.dropout)
        self.head = Linear(n * config.encoder.d_model, per_row * self.horizon * self.n_outputs)
        self.ahead = ahead(widths)

    def forward(self, inputs: Inputs) -> Tensor:
        """forecast_BCYJ: the mean, then the quantiles, on the scale of the training data."""
        states_RND, instance = self._read(inputs)
        flat_RO = self.head(self.dropout(states_RND.flatten(1)))
        forecast_BCYJ: Tensor = flat_RO.view(-1, self.n_channels, self.horizon, self.n_outputs)
        if self.ahead is not None:
            forecast_BCYJ = forecast_BCYJ + self.ahead(inputs["known"], self.horizon, self.n_channels)
        return forecast_BCYJ if instance is None else instance.restore(forecast_BCYJ)

    def _read(self, inputs: Inputs) -> tuple[Tensor, Instance | None]:
        """The states of the past, and how it was normalised."""
        x_BTC = scaled(inputs["steps"], self.mean, self.deviation)
        instance = Instance.of(x_BTC) if self.config.instance_norm else None
        x_BTC = x_BTC.nan_to_num(0.0) if instance is None else instance.normalise(x_BTC)
        if self.ahead is None:
            return self.encoder.encode(x_BTC), instance
        return self.encoder.encode(
            x_BTC, self.ahead.normalise(inputs["known"])[:, : x_BTC.shape[1]]
        ), instance

    def contributions(self, inputs: Inputs) -> Tensor:
        """shares_BCYN: what the state of each patch adds to the mean forecast, in instance deviations.

        The head is linear, so these, what is known ahead and a constant add up to the forecast.
        """
        states_RND = self._read(inputs)[0]
        rows = self.n_channels if self.encoder.mixed else 1
        weight_CYJND = self.head.weight.view(rows, self.horizon, self.n_outputs, *states_RND.shape[1:])
        shares_RCYN = torch.einsum("rnd,cynd->rcyn", states_RND, weight_CYJND[:, :, 0])
        return shares_RCYN.flatten(0, 1).view(-1, self.n_channels, self.horizon, states_RND.shape[1])

    def positions(self, axis: Axis) -> Axis:
        """The patches of an axis of steps."""
        return self.config.encoder.positions(axis)
