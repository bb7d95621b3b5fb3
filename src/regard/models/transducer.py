"""A transducer (Graves 2012; Zhang et al. 2020): an encoder hears, a prediction network knows what was
written, and a joint network decides at every frame which label is next, or that none is.
"""

from typing import Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from regard.fields.axis import Axis
from regard.layers.dropout import Dropout
from regard.layers.inputs import Encoded, Inputs
from regard.layers.prediction import Recalling, Stateless
from regard.layers.transducer import Joint, lattice, occupation, transducer_loss
from regard.linear import Linear
from regard.models.ctc import CTCHead, Losses
from regard.models.encoders import EncoderConfig, EncodingConfig
from regard.models.encoders.speech import SpeechConfig
from regard.models.widths import Widths


class TransducerConfig(EncodingConfig):
    kind: Literal["transducer"] = "transducer"
    encoder: EncoderConfig = SpeechConfig()
    prediction: Literal["stateless", "lstm"] = Field(
        "stateless", description="sees the last `context` labels; lstm: all labels"
    )
    context: int = Field(2, ge=1, le=16, description="labels that a stateless prediction network sees")
    d_joint: int = Field(144, ge=1, description="width of the joint and of the prediction network")
    ctc: float = Field(0.3, ge=0, description="weight of a CTC loss beside that of the transducer")
    fast_emit: float = Field(0.0, ge=0, le=1, description="above 0: labels are written sooner (FastEmit)")
    dropout: float = Field(0.1, ge=0, lt=1, description="of the prediction network, and before the joint one")

    @property
    def d_model(self) -> int:
        return self.encoder.d_out

    def build(self, widths: Widths) -> "Transducer":
        return Transducer(self, widths)

    def __str__(self) -> str:
        return f"{self.describe('transducer')}, {self.prediction} prediction"


class Transducer(nn.Module):
    def __init__(self, config: TransducerConfig, widths: Widths) -> None:
        super().__init__()
        self.config = config
        self.encoder = config.encoder.build(widths.input)
        n_labels, d_joint = widths.target["vocab"], config.d_joint
        self.prediction: Stateless | Recalling = (
            Stateless(n_labels, config.context, d_joint, config.dropout)
            if config.prediction == "stateless"
            else Recalling(n_labels, d_joint, config.dropout)
        )
        self.heard = Linear(config.encoder.d_out, d_joint)
        self.written = Linear(d_joint, d_joint, bias=False)
        self.output = Linear(d_joint, n_labels)
        self.ctc = CTCHead(config.encoder.d_out, n_labels) if config.ctc else None
        self.dropout = Dropout(config.dropout)

    def forward(self, inputs: Inputs, labels_BU: Tensor, n_labels_B: Tensor) -> Losses:
        """The losses of each row; labels are padded with blanks."""
        encoded: Encoded = self.encoder(inputs)
        joint = self.joint(self.dropout(encoded.states_RTD), labels_BU)
        loss_B = transducer_loss(
            joint, labels_BU, encoded.lengths_R, n_labels_B, fast_emit=self.config.fast_emit
        )
        losses = {"transducer": (loss_B, 1.0)}
        if self.ctc is not None:
            losses["ctc"] = (self.ctc.loss(encoded, labels_BU, n_labels_B), self.config.ctc)
        return losses

    def joint(self, states_BTD: Tensor, labels_BU: Tensor) -> Joint:
        written_BUF = self.written(self.prediction(labels_BU))
        assert self.output.bias is not None
        return Joint(self.heard(states_BTD), written_BUF, self.output.weight, self.output.bias)

    def log_prob(self, inputs: Inputs, labels_BU: Tensor, n_labels_B: Tensor) -> Tensor:
        """log_prob_B of the labels, over all ways to write them."""
        encoded: Encoded = self.encoder(inputs)
        joint = self.joint(encoded.states_RTD, labels_BU)
        return -transducer_loss(joint, labels_BU, encoded.lengths_R, n_labels_B)

    def occupied(self, inputs: Inputs, labels_BU: Tensor, n_labels_B: Tensor) -> Tensor:
        """occupied_BUT: the probability that a label is written at a frame, over all ways to write them."""
        encoded: Encoded = self.encoder(inputs)
        joint = self.joint(encoded.states_RTD, labels_BU)
        return occupation(lattice(joint, labels_BU, encoded.lengths_R, n_labels_B)).label_BTU.transpose(1, 2)

    def log_probs_at(self, inputs: Inputs, labels_BU: Tensor, frames_BU: Tensor) -> Tensor:
        """log_probs_BU of labels at these frames, each after those before it."""
        joint = self.joint(self.encoder(inputs).states_RTD, labels_BU)
        index_BUF = frames_BU[..., None].expand(-1, -1, joint.encoded_BTF.shape[2])
        hidden_BUF = (joint.encoded_BTF.gather(1, index_BUF) + joint.predicted_BUF[:, :-1]).tanh()
        log_probs_BUV = F.log_softmax(self.output(hidden_BUF), dim=-1)
        return log_probs_BUV.gather(2, labels_BU[..., None]).squeeze(2)

    # what a search asks for (decode/frames.py)

    labels_per_frame = True
    """True if several labels may be written at one frame."""

    def enter(self, states_BTD: Tensor) -> Tensor:
        """Inputs that a search reads from each state."""
        entered: Tensor = self.heard(states_BTD)
        return entered

    def begin(self, n_rows: int) -> tuple[Tensor, ...]:
        """The state of a search before the first label."""
        predicted_ND, state = self.prediction.start(n_rows)
        return (self.written(predicted_ND), *state)

    def write(self, labels_N: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        predicted_ND, after = self.prediction.step(labels_N, state[1:])
        return (self.written(predicted_ND), *after)

    def score(self, entered_NF: Tensor, state: tuple[Tensor, ...]) -> Tensor:
        """log_probs_NV of the next label at this frame; the blank goes on to the next frame."""
        return F.log_softmax(self.output((entered_NF + state[0]).tanh()), dim=-1)

    def positions(self, axis: Axis) -> Axis:
        """The axis of the encoder's states."""
        return self.config.encoder.positions(axis)
