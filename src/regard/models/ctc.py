"""CTC (Graves et al. 2006): an encoder hears, and every frame by itself says a label or the blank."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.fields.axis import Axis
from regard.layers.ctc import ctc_occupation
from regard.layers.dropout import Dropout
from regard.layers.inputs import Encoded, Inputs
from regard.layers.transducer import BLANK
from regard.linear import Linear
from regard.models.encoders import EncoderConfig, EncodingConfig
from regard.models.encoders.speech import SpeechConfig
from regard.models.widths import Widths

Losses = Mapping[str, tuple[Tensor, float]]
"""Losses by name: that of each row, and its weight."""


class CTCConfig(EncodingConfig):
    kind: Literal["ctc"] = "ctc"
    encoder: EncoderConfig = SpeechConfig()
    dropout: float = Field(0.1, ge=0, lt=1, description="before the last map")

    @property
    def d_model(self) -> int:
        return self.encoder.d_out

    def build(self, widths: Widths) -> "CTC":
        return CTC(self, widths)

    def __str__(self) -> str:
        return self.describe("CTC")


class CTCHead(nn.Module):
    def __init__(self, d_in: int, n_labels: int) -> None:
        super().__init__()
        self.output = Linear(d_in, n_labels)

    def forward(self, states_BTD: Tensor) -> Tensor:
        return F.log_softmax(self.output(states_BTD), dim=-1)

    def loss(self, encoded: Encoded, labels_BU: Tensor, n_labels_B: Tensor) -> Tensor:
        """−log p(labels | frames) of each row; 0 where there are more labels than frames can say."""
        log_probs_TBV = self(encoded.states_RTD).transpose(0, 1)
        lengths = encoded.lengths_R, n_labels_B
        return F.ctc_loss(
            log_probs_TBV, labels_BU, *lengths, blank=BLANK, reduction="none", zero_infinity=True
        )


class CTC(nn.Module):
    def __init__(self, config: CTCConfig, widths: Widths) -> None:
        super().__init__()
        self.config = config
        self.encoder = config.encoder.build(widths.input)
        self.head = CTCHead(config.encoder.d_out, widths.target["vocab"])
        self.dropout = Dropout(config.dropout)

    def forward(self, inputs: Inputs, labels_BU: Tensor, n_labels_B: Tensor) -> Losses:
        """The loss of each row; labels are padded with blanks."""
        encoded: Encoded = self.encoder(inputs)
        heard = encoded._replace(states_RTD=self.dropout(encoded.states_RTD))
        return {"ctc": (self.head.loss(heard, labels_BU, n_labels_B), 1.0)}

    def log_prob(self, inputs: Inputs, labels_BU: Tensor, n_labels_B: Tensor) -> Tensor:
        """log_prob_B of the labels, over all ways to say them."""
        loss_B: Tensor = self.head.loss(self.encoder(inputs), labels_BU, n_labels_B)
        return -loss_B

    def occupied(self, inputs: Inputs, labels_BU: Tensor, n_labels_B: Tensor) -> Tensor:
        """occupied_BUT: the probability that a frame says a label, over all ways to say them."""
        encoded: Encoded = self.encoder(inputs)
        log_probs_BTV = self.head(encoded.states_RTD)
        occupied_BUT: Tensor = log_probs_BTV.new_zeros(*labels_BU.shape, log_probs_BTV.shape[1])
        for row, (n_frames, n_labels) in enumerate(zip(encoded.lengths_R, n_labels_B, strict=True)):
            found_UT = ctc_occupation(log_probs_BTV[row, :n_frames], labels_BU[row, :n_labels], BLANK)
            occupied_BUT[row, :n_labels, :n_frames] = found_UT
        return occupied_BUT

    def log_probs_at(self, inputs: Inputs, labels_BU: Tensor, frames_BU: Tensor) -> Tensor:
        """log_probs_BU of labels at these frames."""
        log_probs_BTV = self.head(self.encoder(inputs).states_RTD)
        at_BUV = log_probs_BTV.gather(1, frames_BU[..., None].expand(-1, -1, log_probs_BTV.shape[2]))
        at_BU: Tensor = at_BUV.gather(2, labels_BU[..., None]).squeeze(2)
        return at_BU

    # what a search asks for (decode/frames.py)

    labels_per_frame = False

    def enter(self, states_BTD: Tensor) -> Tensor:
        """log_probs_BTV of each state."""
        log_probs_BTV: Tensor = self.head(states_BTD)
        return log_probs_BTV

    def positions(self, axis: Axis) -> Axis:
        """The axis of the encoder's states."""
        return self.config.encoder.positions(axis)
