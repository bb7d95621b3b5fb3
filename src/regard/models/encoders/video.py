"""A Transformer over tubelets, which are patches of pixels over several frames (ViViT, Arnab et al. 2021).

"divided" attends over time and then over space in every layer (TimeSformer, Bertasius et al. 2021): a tubelet
sees its own place in all frames, then its own frame. "joint" attends to all tubelets of the clip at once,
which costs more the longer the clip is. Tubelets stand in the order of a strip of frames, row by row.
"""

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.attention import FULL, Learned, segments
from regard.errors import RecipeError
from regard.fields.axis import Axis
from regard.layers.block import Block, BlockConfig
from regard.layers.dropout import Dropout
from regard.layers.feedforward import Activation
from regard.layers.inputs import Encoded, Inputs
from regard.layers.pixels import Normalise
from regard.layers.stack import Stack
from regard.linear import Linear
from regard.models.encoders.encoder import EncoderSettings
from regard.models.widths import Width


class VideoConfig(BlockConfig, EncoderSettings):
    kind: Literal["video"] = "video"
    reads: ClassVar[str] = "clips"
    space_time: Literal["divided", "joint"] = Field(
        "divided", description="over time, then over space; joint: over both at once, for short clips"
    )
    tube: int = Field(2, ge=1, le=64, description="frames that become one state, with the patch")
    patch: int = Field(8, ge=1, le=256, description="rows and columns of pixels that become one state")
    d_model: int = Field(128, ge=1)
    n_heads: int = Field(4, ge=1)
    d_ff: int = Field(256, ge=1)
    n_layers: int = Field(4, ge=1, le=512)
    n_kv_heads: None = None
    activation: Activation = "gelu"
    norm: Literal["pre"] = "pre"
    position: Literal["learned"] = "learned"
    reach: None = None
    dropout: float = Field(0.0, ge=0, lt=1, description="on tubelets and sub-layer outputs")
    word_dropout: Literal[0] = 0

    @property
    def d_out(self) -> int:
        return self.d_model

    def build(self, width: Width) -> "VideoEncoder":
        return VideoEncoder(self, width)

    def positions(self, axis: Axis) -> Axis:
        """The tubelets, of the strip of frames."""
        assert axis.grid is not None
        n_rows, n_columns = axis.grid[0] // self.patch, axis.grid[1] // (self.patch * self.tube)
        labels = tuple(f"{y + 1},{x + 1}" for y in range(n_rows) for x in range(n_columns))
        return replace(axis, labels=labels, unit="patch", grid=(n_rows, n_columns))


class VideoEncoder(nn.Module):
    def __init__(self, config: VideoConfig, width: Width) -> None:
        super().__init__()
        self.tube, self.patch = config.tube, config.patch
        self.grid = n_times, n_rows, n_columns = _fitting(config, width)
        self.normalise = Normalise(width["mean"], width["deviation"])
        n_pixels = config.tube * config.patch**2 * width["channels"]
        self.project = Linear(n_pixels, config.d_model)
        self.place = Learned(n_rows * n_columns, config.d_model)
        self.moment = Learned(n_times, config.d_model)
        self.dropout = Dropout(config.dropout)
        self.stack: Stack | None = None
        self.layers: nn.ModuleList | None = None
        if config.space_time == "joint":
            self.stack = Stack(config, config.n_layers)
        else:
            self.layers = nn.ModuleList(Divided(config, self.grid) for _ in range(config.n_layers))
            self.norm = nn.LayerNorm(config.d_model, config.norm_eps)

    def forward(self, inputs: Inputs) -> Encoded:
        x_BND = self.project(self._tubelets(self.normalise(inputs["frames"])))
        y_N, t_N, x_N = _places(self.grid, x_BND.device)
        x_BND = self.dropout(x_BND + self.place(y_N * self.grid[2] + x_N) + self.moment(t_N))
        if self.stack is not None:
            x_BND = self.stack(x_BND)[0]
        else:
            assert self.layers is not None
            for layer in self.layers:
                x_BND = layer(x_BND)
            x_BND = self.norm(x_BND)
        n_batch, n_states = x_BND.shape[:2]
        return Encoded(x_BND, torch.full((n_batch,), n_states, device=x_BND.device))

    def _tubelets(self, x_BTYXC: Tensor) -> Tensor:
        """The pixels of each tubelet, row by row of the strip."""
        n_times, n_rows, n_columns = self.grid
        cut = x_BTYXC.reshape(
            len(x_BTYXC), n_times, self.tube, n_rows, self.patch, n_columns, self.patch, x_BTYXC.shape[-1]
        )
        return cut.permute(0, 3, 1, 5, 2, 4, 6, 7).flatten(4).flatten(1, 3)


class Divided(nn.Module):
    """One layer: attention over the same place in all frames, then over the same frame, then feed-forward.

    While somebody looks, both are the attention over all tubelets with a mask, which is the same.
    """

    def __init__(self, config: BlockConfig, grid: tuple[int, int, int]) -> None:
        super().__init__()
        self.grid = grid
        self.time = config.attention()
        self.time_norm = nn.LayerNorm(config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.space = Block(config, causal=False, cross=False)

    def forward(self, x_BND: Tensor) -> Tensor:
        n_times, n_rows, n_columns = self.grid
        n_batch, n_states, d = x_BND.shape
        y_N, t_N, x_N = _places(self.grid, x_BND.device)
        normal_BND = self.time_norm(x_BND)
        if self.time.tap is not None:
            place_BN = (y_N * n_columns + x_N).expand(n_batch, -1)
            seen_BND = self.time.self_attend(normal_BND, mask=segments(place_BN))[0]
        else:
            by_place = normal_BND.view(n_batch, n_rows, n_times, n_columns, d).transpose(2, 3)
            seen = self.time.self_attend(by_place.reshape(-1, n_times, d), mask=FULL)[0]
            seen_BND = seen.view(n_batch, n_rows, n_columns, n_times, d).transpose(2, 3).reshape(x_BND.shape)
        x_BND = x_BND + self.dropout(seen_BND)
        if self.space.self.tap is not None:
            out_BND: Tensor = self.space(x_BND, mask=segments(t_N.expand(n_batch, -1)))[0]
            return out_BND
        by_time = x_BND.view(n_batch, n_rows, n_times, n_columns, d).transpose(1, 2)
        out = self.space(by_time.reshape(n_batch * n_times, n_rows * n_columns, d))[0]
        out_BTYXD: Tensor = out.view(n_batch, n_times, n_rows, n_columns, d)
        return out_BTYXD.transpose(1, 2).reshape(n_batch, n_states, d)


def _places(grid: tuple[int, int, int], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """The row, the time and the column of each tubelet, in the order of a strip of frames."""
    n_times, n_rows, n_columns = grid
    places = torch.arange(n_times * n_rows * n_columns, device=device)
    return places // (n_times * n_columns), places // n_columns % n_times, places % n_columns


def _fitting(config: VideoConfig, width: Width) -> tuple[int, int, int]:
    """The grid of tubelets, time first; RecipeError if there is none that fits."""
    n_frames, n_rows, n_columns = width["frames"], width["rows"], width["columns"]
    if n_frames % config.tube:
        raise RecipeError(
            f"model.encoder.tube: {n_frames} frames cannot be cut into tubelets of {config.tube}; set "
            f"fields.video.frames = {-(-n_frames // config.tube) * config.tube}, or another tube"
        )
    if n_rows % config.patch or n_columns % config.patch:
        nearest = [max(config.patch, side // config.patch * config.patch) for side in (n_rows, n_columns)]
        raise RecipeError(
            f"model.encoder.patch: frames of {n_rows} × {n_columns} pixels cannot be cut into patches of "
            f"{config.patch} × {config.patch}; set fields.video.size = {nearest}, or another patch"
        )
    return n_frames // config.tube, n_rows // config.patch, n_columns // config.patch
