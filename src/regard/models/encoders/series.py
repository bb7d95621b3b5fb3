"""PatchTST (Nie et al. 2023): a Transformer over patches of a series.

A patch is a run of steps, projected to a token. Channels are read alone, as in the paper (`independent`: a
row of the encoder for each), or together (`mixed`: a patch holds all of them). Two differences from the
paper: layers have LayerNorm in the place of BatchNorm, whose answers depend on the rest of the batch, and
attention scores are not handed on from layer to layer. A stem of convolutions may read the steps before they
are cut into patches: with tens of series to learn from, an encoder needs to be shown what neighbours are.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from regard.attention import FULL, Learned, Mask, Sinusoidal, padding
from regard.fields.axis import Axis
from regard.layers.block import BlockConfig
from regard.layers.dropout import Dropout
from regard.layers.feedforward import Activation
from regard.layers.inputs import Encoded, Inputs
from regard.layers.stack import Stack
from regard.layers.steps import n_patches, patches, scaled
from regard.linear import Linear
from regard.models.encoders.encoder import EncoderSettings
from regard.models.widths import Width


class PatchTSTConfig(BlockConfig, EncoderSettings):
    kind: Literal["patchtst"] = "patchtst"
    reads: ClassVar[str] = "steps"
    patch: int = Field(16, ge=1, description="steps of a patch")
    stride: int = Field(8, ge=1, description="steps from one patch to the next")
    stem: tuple[int, ...] = Field(
        (), description="kernels of convolutions over the steps, before the patches; small data want some"
    )
    channels: Literal["mixed", "independent"] = Field(
        "mixed", description="whether a patch holds all channels, or each channel is read alone"
    )
    d_model: int = Field(64, ge=1)
    n_heads: int = Field(4, ge=1)
    d_ff: int = Field(128, ge=1)
    n_layers: int = Field(3, ge=1, le=512)
    activation: Activation = "gelu"
    position: Literal["learned", "sinusoidal", "rotary", "relative", "alibi", "none"] = "learned"
    dropout: float = Field(0.2, ge=0, lt=1)

    @field_validator("stem")
    @classmethod
    def _odd(cls, kernels: tuple[int, ...]) -> tuple[int, ...]:
        if any(kernel < 1 or kernel % 2 == 0 for kernel in kernels):
            raise ValueError("kernels are odd numbers, as a step stands in the middle of its neighbours")
        return kernels

    @property
    def d_out(self) -> int:
        return self.d_model

    def build(self, width: Width) -> "PatchTST":
        return PatchTST(self, width)

    def positions(self, axis: Axis) -> Axis:
        """The patches of an axis of steps."""
        n = len(axis)
        begins = [at * self.stride for at in range(n_patches(n, self.patch, self.stride))]
        return axis.covered([(begin, min(begin + self.patch, n)) for begin in begins], "segment")


class StepConvolution(nn.Module):
    """A convolution over the steps, LayerNorm and GELU, beside a residual connection where widths agree."""

    def __init__(self, d_in: int, d_out: int, kernel: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(d_in, d_out, kernel, padding=kernel // 2)
        self.norm = nn.LayerNorm(d_out)
        self.is_residual = d_in == d_out

    def forward(self, x_RCT: Tensor, real_R1T: Tensor | None) -> Tensor:
        """Steps that are not real are 0, before and after, so that padding changes nothing."""
        normed_RTD = self.norm(self.convolution(x_RCT).transpose(1, 2))
        y_RDT = nn.functional.gelu(normed_RTD).transpose(1, 2)
        y_RDT = x_RCT + y_RDT if self.is_residual else y_RDT
        return y_RDT if real_R1T is None else y_RDT * real_R1T


class PatchTST(nn.Module):
    def __init__(self, config: PatchTSTConfig, width: Width) -> None:
        super().__init__()
        self.patch, self.stride, self.mixed = config.patch, config.stride, config.channels == "mixed"
        self.mean, self.deviation, d_model = width["mean"], width["deviation"], config.d_model
        n_columns = (width["channels"] if self.mixed else 1) + width["known"]
        self.stem = nn.ModuleList()
        for kernel in config.stem:
            self.stem.append(StepConvolution(n_columns, d_model, kernel))
            n_columns = d_model
        self.project = Linear(config.patch * n_columns, d_model)
        self.position: nn.Module | None = None
        if config.position == "learned":
            self.position = Learned(n_patches(width["steps"], config.patch, config.stride), d_model)
        elif config.position == "sinusoidal":
            self.position = Sinusoidal(d_model)
        self.dropout = Dropout(config.dropout)
        self.stack = Stack(config, config.n_layers)

    def forward(self, inputs: Inputs) -> Encoded:
        steps_BTC, lengths_B = inputs["steps"], inputs["lengths"]
        every_T = torch.arange(steps_BTC.shape[1], device=lengths_B.device)
        real_BT1 = (every_T < lengths_B[:, None])[..., None]
        x_BTC = torch.where(real_BT1, scaled(steps_BTC, self.mean, self.deviation), 0.0)
        n_B = (lengths_B - self.patch).clamp(min=0).add(self.stride - 1) // self.stride + 1
        if not self.mixed:
            n_B = n_B.repeat_interleave(x_BTC.shape[2])
        return Encoded(self.encode(x_BTC, None, padding(n_B), real_BT1.transpose(1, 2)), n_B)

    def encode(
        self,
        x_BTC: Tensor,
        known_BTK: Tensor | None = None,
        mask: Mask = FULL,
        real_B1T: Tensor | None = None,
    ) -> Tensor:
        """states_RND of steps on one scale without gaps; where channels are read alone, R is B × C."""
        rows_RCT = x_BTC.transpose(1, 2)
        if not self.mixed:
            rows_RCT = rows_RCT.flatten(0, 1)[:, None]
        if known_BTK is not None:
            known_BKT = known_BTK.transpose(1, 2)
            each = len(rows_RCT) // len(known_BKT)
            rows_RCT = torch.cat([rows_RCT, known_BKT.repeat_interleave(each, 0)], 1)
        if self.stem:
            real_R1T = None
            if real_B1T is not None:
                real_R1T = real_B1T.repeat_interleave(len(rows_RCT) // len(real_B1T), 0)
            for convolution in self.stem:
                rows_RCT = convolution(rows_RCT, real_R1T)
        x_RND = self.project(patches(rows_RCT, self.patch, self.stride))
        if self.position is not None:
            x_RND = x_RND + self.position(torch.arange(x_RND.shape[1], device=x_RND.device)[None])
        states_RND: Tensor = self.stack(self.dropout(x_RND), mask=mask)[0]
        return states_RND
