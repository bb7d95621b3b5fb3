"""The protocol of an encoder's configuration: one file = one encoder, its config on top, the module below."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import nn

from regard.config import Config
from regard.fields.axis import Axis
from regard.models.widths import Width


class EncoderSettings(Config):
    """An encoder reads the named tensors of one input (`layers.inputs.Inputs`) and gives `Encoded` states."""

    kind: str
    reads: ClassVar[str]
    """The kind of input: tokens, pixels, frames, …"""

    pace: ClassVar[Mapping[str, Any]] = {}
    """Pace of a first training, where it is not as for a text: fields of `Pace`."""

    @classmethod
    def first(cls, n_units: int) -> Mapping[str, Any]:
        """The settings of a first recipe, for an input of so many units, as fields count them."""
        return {}

    @property
    def d_out(self) -> int:
        raise NotImplementedError

    def build(self, width: Width) -> nn.Module:
        raise NotImplementedError

    def remarks(self, width: Width) -> list[str]:
        """Remarks on an input before it is learnt from."""
        return []

    def positions(self, axis: Axis) -> Axis:
        """The axis of the states, of that of the input: where an encoder cuts patches or adds a mark."""
        return axis
