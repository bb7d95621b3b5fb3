"""The protocol of an encoder's configuration: one file = one encoder, its config on top, the module below."""

from typing import ClassVar

from torch import nn

from regard.config import Config
from regard.fields.axis import Axis
from regard.models.widths import Width


class EncoderSettings(Config):
    """An encoder reads the named tensors of one input (`layers.inputs.Inputs`) and gives `Encoded` states."""

    kind: str
    reads: ClassVar[str]
    """The kind of input: tokens, pixels, frames, …"""

    @property
    def d_out(self) -> int:
        raise NotImplementedError

    def build(self, width: Width) -> nn.Module:
        raise NotImplementedError

    def remarks(self, width: Width) -> list[str]:
        """What is worth knowing before such an input is learnt from."""
        return []

    def positions(self, axis: Axis) -> Axis:
        """The axis of the states, of that of the input: where an encoder cuts patches or adds a mark."""
        return axis
