"""A made-up kind of data and its encoder: small grey pictures as lists of numbers, cut into patches.

They live here and nowhere else: no file of `src` knows them, but `init`, `check`, `train`, `explain` and
`serve` do with them what they do with text.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field as Setting
from torch import nn

from regard.attention import Learned
from regard.errors import DataError
from regard.fields.axis import Axis
from regard.fields.field import Arrays, Coded, Field, FieldSettings, Occlusion, Suggestion, Width
from regard.layers.block import BlockConfig
from regard.layers.inputs import Encoded, Inputs
from regard.layers.stack import Stack
from regard.linear import Linear
from regard.models.encoders.encoder import EncoderSettings


class ToyImageSettings(FieldSettings):
    kind: Literal["toy"] = "toy"
    side: int = Setting(8, ge=2, description="pixels of a row and of a column")


@dataclass(frozen=True)
class ToyImage(Field):
    """Field and input at once: nothing is joined, nothing is cut."""

    kind: ClassVar[str] = "toy"
    settings: ClassVar[type[FieldSettings]] = ToyImageSettings
    reads: ClassVar[str] = "toys"
    side: int = 8
    mean: float = 0.0
    deviation: float = 1.0
    optional: bool = False
    name: str = "image"

    @classmethod
    def resembles(cls, cells: Sequence[Any]) -> float:
        return float(
            np.mean([isinstance(cell, list) and bool(cell) and isinstance(cell[0], list) for cell in cells])
        )

    @classmethod
    def suggest(cls, cells: Sequence[Any]) -> Suggestion:
        side = len(cells[0])
        return Suggestion({"side": side}, side**2, {"side": f"all pictures looked at are {side} pixels wide"})

    @classmethod
    def of(cls, settings: ToyImageSettings) -> Self:
        return cls(settings.side)

    @property
    def sample(self) -> Any:
        return [[0.0] * self.side] * self.side

    @property
    def width(self) -> Width:
        return {"side": self.side, "mean": self.mean, "deviation": self.deviation}

    def clean(self, cell: object, where: str, name: str, folder: Path | None = None) -> Any:
        if not isinstance(cell, list):
            raise DataError(f"{where}: {name} must be {self.side} lists of {self.side} numbers")
        return cell

    def parse(self, cell: Any, where: str) -> Any:
        try:
            pixels = np.array(cell, np.float32)
        except (TypeError, ValueError):
            pixels = np.zeros(0, np.float32)
        if pixels.shape != (self.side, self.side):
            raise DataError(f"{where}: the image is not {self.side} rows of {self.side} numbers each")
        return pixels

    def fit(self, values: Iterable[Any]) -> Self:
        pixels = np.stack(list(values))
        return replace(self, mean=float(pixels.mean()), deviation=float(pixels.std()))

    def encode(self, values: Sequence[Any]) -> list[Coded]:
        return [Coded({"pixels": pixels}) for pixels in values]

    def save(self, folder: Path) -> None:
        (folder / "image.json").write_text(json.dumps([self.mean, self.deviation]))

    def load(self, folder: Path) -> Self:
        mean, deviation = json.loads((folder / "image.json").read_text())
        return replace(self, mean=mean, deviation=deviation)

    def alone(self, limit: int) -> Self:
        return self

    @property
    def most(self) -> int:
        return self.side * self.side

    def assemble(self, parts: Sequence[Coded]) -> Coded:
        (part,) = parts
        return part

    def is_empty(self, arrays: Arrays) -> bool:
        return False

    def size(self, arrays: Arrays) -> int:
        return self.side * self.side

    def collate(self, many: Sequence[Arrays]) -> Arrays:
        return {"pixels": np.stack([np.asarray(arrays["pixels"], np.float32) for arrays in many])}

    def without(self, batch: Arrays, axis: Axis, units: Sequence[int], how: Occlusion) -> Arrays:
        """Whatever is asked, a patch cannot be removed: it becomes the mean."""
        assert axis.grid is not None
        pixels = np.repeat(batch["pixels"], len(units), 0)
        step = self.side // axis.grid[0]
        for row, unit in enumerate(units):
            y, x = divmod(unit, axis.grid[1])
            pixels[row, y * step : (y + 1) * step, x * step : (x + 1) * step] = self.mean
        return {"pixels": pixels}

    def axis(self, values: Sequence[Any], coded: Coded) -> Axis:
        labels = tuple(f"{n // self.side},{n % self.side}" for n in range(self.side**2))
        return Axis("image", labels, unit="pixel", grid=(self.side, self.side))


class ToyPatchesConfig(BlockConfig, EncoderSettings):
    kind: Literal["patches"] = "patches"
    reads: ClassVar[str] = "toys"
    patch: int = Setting(2, ge=1)
    d_model: int = 16
    d_ff: int = 32
    n_heads: int = 2
    n_layers: int = 1

    @property
    def d_out(self) -> int:
        return self.d_model

    def build(self, width: Width) -> "ToyPatches":
        return ToyPatches(self, width)

    def positions(self, axis: Axis) -> Axis:
        assert axis.grid is not None
        n = axis.grid[0] // self.patch
        labels = tuple(f"{i // n},{i % n}" for i in range(n * n))
        return replace(axis, labels=labels, unit="patch", grid=(n, n))


class ToyPatches(nn.Module):
    def __init__(self, config: ToyPatchesConfig, width: Width) -> None:
        super().__init__()
        self.patch, self.mean, self.deviation = config.patch, width["mean"], width["deviation"]
        n = (width["side"] // config.patch) ** 2
        self.project, self.place = Linear(config.patch**2, config.d_model), Learned(n, config.d_model)
        self.stack = Stack(config, config.n_layers)

    def forward(self, inputs: Inputs) -> Encoded:
        x_BHW, p = (inputs["pixels"] - self.mean) / self.deviation, self.patch
        patches_BTP = x_BHW.unfold(1, p, p).unfold(2, p, p).flatten(3).flatten(1, 2)
        n_rows, n = patches_BTP.shape[:2]
        states_BTD = self.stack(self.project(patches_BTP) + self.place(torch.arange(n)[None]))[0]
        return Encoded(states_BTD, torch.full((n_rows,), n))
