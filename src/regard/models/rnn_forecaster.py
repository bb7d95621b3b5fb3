"""An RNN encoder-decoder with additive attention (Bahdanau et al. 2015) that reads and writes in patches.

The encoder reads a patch of the past at each step; the decoder writes a patch of the future at each step,
looks at the states of the past in between, and reads what it wrote itself, in training as later. Every
channel is read alone.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.attention import Additive, Attention
from regard.fields.axis import Axis
from regard.layers.dropout import Dropout
from regard.layers.inputs import Inputs
from regard.layers.recurrent import CellKind, CellStack, Recurrent
from regard.layers.steps import Instance, Known, patches, scaled
from regard.linear import Linear
from regard.models.settings import ModelSettings
from regard.models.widths import Widths


class RNNForecasterConfig(ModelSettings):
    kind: Literal["rnn_forecaster"] = "rnn_forecaster"
    reads: ClassVar[str] = "steps"
    patch: int = Field(24, ge=1, description="steps that are read, and written, at once")
    cell: CellKind = "gru"
    d_hidden: int = Field(64, ge=2, multiple_of=2, description="of both directions together")
    n_layers: int = Field(1, ge=1, le=16)
    dropout: float = Field(0.2, ge=0, lt=1)

    @property
    def d_model(self) -> int:
        return self.d_hidden

    def build(self, widths: Widths) -> "RNNForecaster":
        return RNNForecaster(self, widths)

    def __str__(self) -> str:
        return f"{self.cell} forecaster with attention, d={self.d_hidden}, {self.n_layers} layer(s)"


class RNNForecaster(nn.Module):
    def __init__(self, config: RNNForecasterConfig, widths: Widths) -> None:
        super().__init__()
        width, target, d = widths.input, widths.target, config.d_hidden
        self.config = config
        self.mean, self.deviation, self.n_channels = width["mean"], width["deviation"], width["channels"]
        self.horizon, self.n_outputs = target["horizon"], 1 + target["quantiles"]
        self.known = Known(width["known_mean"], width["known_deviation"]) if width["known"] else None
        n_known = width["known"] * config.patch
        self.enter = Linear(config.patch + n_known, d)
        self.encoder = Recurrent(
            config.cell, d, d, config.n_layers, bidirectional=True, dropout=config.dropout
        )
        self.attention = Attention(d, project="qk", score=Additive(d))
        self.cells = CellStack(config.cell, config.patch + n_known, d, d, config.n_layers, config.dropout)
        self.bridge = Linear(d, d * self.cells.n_states)
        self.dropout = Dropout(config.dropout)
        self.output = Linear(2 * d, config.patch * self.n_outputs)

    def forward(self, inputs: Inputs) -> Tensor:
        """forecast_BCYJ: the mean, then the quantiles, on the scale of the training data."""
        x_BTC = scaled(inputs["steps"], self.mean, self.deviation)
        instance = Instance.of(x_BTC)
        x_RNP = _ended(instance.normalise(x_BTC).transpose(1, 2).flatten(0, 1)[:, None], self.config.patch)
        last_RP = x_RNP[:, -1]
        past_RNK, future_RMK = self._known(inputs, x_RNP)
        lengths_R = torch.full((len(x_RNP),), x_RNP.shape[1])
        states_RND, summary_RD = self.encoder(self.enter(torch.cat([x_RNP, past_RNK], -1)), lengths_R)
        memory = self.attention.project_kv(self.dropout(states_RND))
        layers = self.cells.start(torch.tanh(self.bridge(summary_RD)))
        written = []
        for known_RK in future_RMK.unbind(1):
            context_RD = self.attention(layers[-1][0][:, None], memory).squeeze(1)
            layers = self.cells(self.cells.enter(torch.cat([last_RP, known_RK], -1)), context_RD, layers)
            state_RD = torch.cat([layers[-1][0], context_RD], -1)
            patch_RPJ = self.output(self.dropout(state_RD)).unflatten(-1, (self.config.patch, -1))
            last_RP = patch_RPJ[..., 0]
            written.append(patch_RPJ)
        forecast_RYJ = torch.cat(written, 1)[:, : self.horizon]
        return instance.restore(forecast_RYJ.view(-1, self.n_channels, *forecast_RYJ.shape[1:]))

    def _known(self, inputs: Inputs, x_RNP: Tensor) -> tuple[Tensor, Tensor]:
        """Known values of each patch of the past, and of the future; nothing wide where nothing is known."""
        patch, n_written = self.config.patch, -(-self.horizon // self.config.patch)
        if self.known is None:
            return x_RNP[:, :, :0], x_RNP.new_zeros(len(x_RNP), n_written, 0)
        known_BKT = self.known.normalise(inputs["known"]).transpose(1, 2)
        past_BNK = _ended(known_BKT[:, :, : -self.horizon], patch)
        future_BMK = patches(known_BKT[:, :, -self.horizon :], patch, patch)
        each = len(x_RNP) // len(known_BKT)
        return past_BNK.repeat_interleave(each, 0), future_BMK.repeat_interleave(each, 0)

    def positions(self, axis: Axis) -> Axis:
        """The patches of the past, which are counted from its end."""
        return axis.runs(self.config.patch, "segment", at_end=True)

    def answers(self, axis: Axis) -> Axis:
        """The patches of the future."""
        return axis.runs(self.config.patch, "steps")


def _ended(steps_RCT: Tensor, patch: int) -> Tensor:
    """Patches of which the last ends where the steps end."""
    missing = -steps_RCT.shape[-1] % patch
    return patches(nn.functional.pad(steps_RCT, (missing, 0)), patch, patch)
