"""A small residual network (He et al. 2016), which convolves where a ViT attends.

Before every convolution stand a normalisation and ReLU (He et al. 2016b). Groups of channels are normalised
(Wu & He 2018), not the batch: what a picture becomes does not depend on the others of its batch.
"""

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.fields.axis import Axis
from regard.layers.dropout import Dropout
from regard.layers.inputs import Encoded, Inputs
from regard.layers.pixels import Normalise, channels_first, in_reading_order
from regard.linear import Convolution
from regard.models.encoders.encoder import EncoderSettings
from regard.models.widths import Width

GROUPS = 8


class CNNConfig(EncoderSettings):
    kind: Literal["cnn"] = "cnn"
    reads: ClassVar[str] = "pixels"
    widths: tuple[int, ...] = Field(
        (32, 64, 128), min_length=1, max_length=8, description="channels of the stages; each halves the sides"
    )
    n_blocks: int = Field(1, ge=1, le=64, description="residual blocks of a stage")
    dropout: float = Field(0.0, ge=0, lt=1, description="before the second convolution of a block")

    @property
    def d_out(self) -> int:
        return self.widths[-1]

    def build(self, width: Width) -> "CNN":
        return CNN(self, width)

    def positions(self, axis: Axis) -> Axis:
        """The cells of the last plane; each has seen far more than what lies below it."""
        assert axis.grid is not None
        n_rows, n_columns = (-(-side // 2 ** (len(self.widths) - 1)) for side in axis.grid)
        labels = tuple(f"{y + 1},{x + 1}" for y in range(n_rows) for x in range(n_columns))
        return replace(axis, labels=labels, unit="cell", grid=(n_rows, n_columns))


class CNN(nn.Module):
    def __init__(self, config: CNNConfig, width: Width) -> None:
        super().__init__()
        self.normalise = Normalise(width["mean"], width["deviation"])
        first, *_ = config.widths
        self.stem = Convolution(width["channels"], first, 3)
        blocks, d_in = [], first
        for stage, d_out in enumerate(config.widths):
            for n in range(config.n_blocks):
                stride = 2 if stage and not n else 1
                blocks.append(Residual(d_in, d_out, stride, config.dropout))
                d_in = d_out
        self.blocks = nn.Sequential(*blocks)
        self.norm = _norm(d_in)

    def forward(self, inputs: Inputs) -> Encoded:
        x_BCYX = self.stem(channels_first(self.normalise(inputs["pixels"])))
        states_BTC = in_reading_order(F.relu(self.norm(self.blocks(x_BCYX))))
        n_batch, n_states = states_BTC.shape[:2]
        return Encoded(states_BTC, torch.full((n_batch,), n_states, device=states_BTC.device))


class Residual(nn.Module):
    """Two convolutions beside a way straight on, which is one of 1 × 1 where sides or channels change."""

    def __init__(self, d_in: int, d_out: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.second_norm = _norm(d_in), _norm(d_out)
        self.first, self.second = Convolution(d_in, d_out, 3, stride=stride), Convolution(d_out, d_out, 3)
        self.straight = Convolution(d_in, d_out, 1, stride=stride) if (d_in, stride) != (d_out, 1) else None
        self.dropout = Dropout(dropout)

    def forward(self, x_BCYX: Tensor) -> Tensor:
        inner_BCYX = F.relu(self.norm(x_BCYX))
        straight_BCYX = x_BCYX if self.straight is None else self.straight(inner_BCYX)
        inner_BCYX = F.relu(self.second_norm(self.first(inner_BCYX)))
        out_BCYX: Tensor = straight_BCYX + self.second(self.dropout(inner_BCYX))
        return out_BCYX


def _norm(d: int) -> nn.GroupNorm:
    return nn.GroupNorm(next(n for n in range(min(GROUPS, d), 0, -1) if d % n == 0), d)
