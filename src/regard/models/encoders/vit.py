"""ViT (Dosovitskiy et al. 2021): a Transformer over the patches of a picture.

Patches are mapped one by one, or come out of a few convolutions, as small data want it. Before them may stand
a class token, whose state then is that of the picture, and DeiT's distillation token (Touvron et al. 2021).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.attention import Learned
from regard.attention.position import sinusoid
from regard.errors import RecipeError
from regard.fields.axis import Axis
from regard.layers.block import BlockConfig
from regard.layers.dropout import Dropout
from regard.layers.feedforward import Activation
from regard.layers.inputs import Encoded, Inputs
from regard.layers.pixels import ConvStem, Normalise, Patches
from regard.layers.stack import Stack
from regard.models.encoders.encoder import EncoderSettings
from regard.models.widths import Width

CLASS_TOKENS = ("[class]", "[distilled]")
FEW_PATCHES = 16


def _sizes(d_model: int) -> dict[str, Any]:
    """The sizes of a preset: 12 layers, heads 64 wide, d_ff four times d_model, patches of 16 × 16."""
    return {"d_model": d_model, "n_heads": d_model // 64, "d_ff": 4 * d_model, "n_layers": 12, "patch": 16}


PRESETS: dict[str, dict[str, Any]] = {"tiny": _sizes(192), "small": _sizes(384), "base": _sizes(768)}


FIRST: dict[str, Any] = {
    "stem": "conv",
    "stem_depth": 2,
    "d_stem": 32,
    "d_model": 128,
    "n_heads": 2,
    "d_ff": 256,
    "n_layers": 2,
}
"""Half a million parameters: what tens of thousands of pictures can fill (recipes/cifar10.toml)."""
MOST_FIRST = 200
"""Patches of a first model."""


class ViTConfig(BlockConfig, EncoderSettings):
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    kind: Literal["vit"] = "vit"
    reads: ClassVar[str] = "pixels"
    preset: Literal["tiny", "small", "base"] | None = Field(
        None, description="sizes to start from, those of DeiT; fields given beside it win"
    )
    patch: int = Field(4, ge=1, le=256, description="rows and columns of pixels that become one state")
    stem: Literal["patches", "conv"] = Field(
        "patches",
        description="patches: one linear map of each (the paper's); conv: 3 × 3 convolutions, for small data",
    )
    d_stem: int = Field(
        64, ge=1, description="channels of the first convolution; each next has twice as many"
    )
    stem_depth: int = Field(1, ge=1, le=8, description="convolutions of the stem before each halving")
    class_tokens: int = Field(
        0,
        ge=0,
        le=2,
        description="1: a class token before the patches (for pooling first); 2: DeiT's second too",
    )
    d_model: int = Field(192, ge=1)
    n_heads: int = Field(3, ge=1)
    d_ff: int = Field(768, ge=1)
    n_layers: int = Field(6, ge=1, le=512)
    n_kv_heads: None = None
    activation: Activation = "gelu"
    norm: Literal["pre"] = "pre"
    norm_eps: float = Field(1e-6, gt=0)
    position: Literal["learned", "sinusoidal", "none"] = Field(
        "learned", description="sinusoidal: half of the channels for the row, half for the column"
    )
    max_positions: int = Field(4096, ge=1, description="patches that a picture may have")
    dropout: float = Field(0.0, ge=0, lt=1, description="on patches and sub-layer outputs")
    word_dropout: float = Field(
        0.0, ge=0, lt=1, description="of whole patches: hides one but not its position"
    )

    @model_validator(mode="after")
    def _stem_halves(self) -> Self:
        if self.stem == "conv" and (self.patch < 2 or self.patch & (self.patch - 1)):
            raise ValueError(
                f'patch ({self.patch}) must be 2, 4, 8 … with stem = "conv", which halves the sides'
            )
        if self.position == "sinusoidal" and self.d_model % 4:
            raise ValueError(f"sinusoidal positions need d_model ({self.d_model}) to be a multiple of 4")
        return self

    pace: ClassVar[Mapping[str, Any]] = {"optimizer": "muon", "lr": 3e-3, "schedule": "linear"}

    @classmethod
    def first(cls, n_units: int) -> Mapping[str, Any]:
        """A small one with a convolutional stem, whose patches are at most about 200."""
        if n_units < FEW_PATCHES:
            return FIRST | {"patch": 2}
        return FIRST | {"patch": next((p for p in (4, 8) if 16 * n_units <= MOST_FIRST * p**2), 16)}

    @property
    def d_out(self) -> int:
        return self.d_model

    def build(self, width: Width) -> "ViT":
        return ViT(self, width)

    def grid(self, n_rows: int, n_columns: int) -> tuple[int, int]:
        return n_rows // self.patch, n_columns // self.patch

    def remarks(self, width: Width) -> list[str]:
        n_rows, n_columns = self.grid(width["rows"], width["columns"])
        if n_rows * n_columns >= FEW_PATCHES:
            return []
        return [
            f"pictures of {width['rows']} × {width['columns']} pixels are cut into {n_rows} × {n_columns} "
            "patches only, so that there is little to attend to; lower model.encoder.patch"
        ]

    def positions(self, axis: Axis) -> Axis:
        """The class tokens, and the patches of the pixels."""
        assert axis.grid is not None
        n_rows, n_columns = self.grid(*axis.grid)
        patches = [f"{y + 1},{x + 1}" for y in range(n_rows) for x in range(n_columns)]
        return replace(
            axis,
            labels=(*CLASS_TOKENS[: self.class_tokens], *patches),
            unit="patch",
            fixed=frozenset(range(self.class_tokens)),
            grid=(n_rows, n_columns),
        )


class ViT(nn.Module):
    def __init__(self, config: ViTConfig, width: Width) -> None:
        super().__init__()
        n_rows, n_columns = _fitting(config, width)
        self.normalise = Normalise(width["mean"], width["deviation"])
        self.stem: nn.Module = (
            Patches(config.patch, width["channels"], config.d_model)
            if config.stem == "patches"
            else ConvStem(config.patch, width["channels"], config.d_stem, config.d_model, config.stem_depth)
        )
        self.class_tokens = (
            nn.Parameter(torch.empty(config.class_tokens, config.d_model)) if config.class_tokens else None
        )
        n_states = config.class_tokens + n_rows * n_columns
        self.position: Learned | Plane | None = None
        if config.position == "learned":
            self.position = Learned(n_states, config.d_model)
        elif config.position == "sinusoidal":
            self.position = Plane(n_rows, n_columns, config.class_tokens, config.d_model)
        self.dropout, self.patch_dropout = Dropout(config.dropout), Dropout(config.word_dropout)
        self.stack = Stack(config, config.n_layers)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.class_tokens is not None:
            nn.init.normal_(self.class_tokens, std=0.02)
        if isinstance(self.position, Learned):
            nn.init.normal_(self.position.weight, std=0.02)

    def forward(self, inputs: Inputs) -> Encoded:
        x_BTD: Tensor = self.stem(self.normalise(inputs["pixels"]))
        if self.training and self.patch_dropout.p:
            x_BTD = x_BTD * self.patch_dropout(x_BTD.new_ones(*x_BTD.shape[:2], 1))
        if self.class_tokens is not None:
            tokens_BTD = self.class_tokens.expand(x_BTD.shape[0], -1, -1)
            x_BTD = torch.cat([tokens_BTD.to(x_BTD.dtype), x_BTD], dim=1)
        n_batch, n_states = x_BTD.shape[:2]
        if self.position is not None:
            x_BTD = x_BTD + self.position(torch.arange(n_states, device=x_BTD.device))
        states_BTD = self.stack(self.dropout(x_BTD))[0]
        return Encoded(states_BTD, torch.full((n_batch,), n_states, device=x_BTD.device))


class Plane(nn.Module):
    """Sinusoidal positions in a plane: half of the channels for the row, half for the column; 0 before it."""

    def __init__(self, n_rows: int, n_columns: int, n_before: int, d_model: int) -> None:
        super().__init__()
        self.n_rows, self.n_columns, self.n_before, self.d_model = n_rows, n_columns, n_before, d_model

    def forward(self, positions: Tensor) -> Tensor:
        places = positions - self.n_before
        row, column = places.div(self.n_columns, rounding_mode="floor"), places % self.n_columns
        both = [sinusoid(place, self.d_model // 2) for place in (row, column)]
        return torch.cat(both, dim=-1) * (places >= 0)[..., None]


def _fitting(config: ViTConfig, width: Width) -> tuple[int, int]:
    """The grid of patches; RecipeError if there is none that fits."""
    size = n_rows, n_columns = width["rows"], width["columns"]
    patch = config.patch
    if any(side % patch for side in size):
        nearest = [max(patch, side // patch * patch) for side in size]
        raise RecipeError(
            f"model.encoder.patch: pictures of {n_rows} × {n_columns} pixels cannot be cut into patches of "
            f"{patch} × {patch}; set fields.image.size = {nearest}, or another patch"
        )
    rows, columns = config.grid(n_rows, n_columns)
    if rows * columns > config.max_positions:
        raise RecipeError(
            f"model.encoder.patch: pictures of {n_rows} × {n_columns} pixels have {rows * columns:,} "
            f"patches, more than max_positions ({config.max_positions:,}); take larger patches, or smaller "
            "pictures"
        )
    return rows, columns
