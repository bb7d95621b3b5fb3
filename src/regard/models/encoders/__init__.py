"""One file = one encoder. ENCODERS is the table a recipe chooses from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from torch import nn

from regard.config import Choice
from regard.models.encoders.bert import Bert, BertConfig
from regard.models.encoders.cnn import CNNConfig
from regard.models.encoders.encoder import EncoderSettings
from regard.models.encoders.rnn import RNNEncoderConfig
from regard.models.encoders.series import PatchTSTConfig
from regard.models.encoders.speech import SpeechConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.encoders.video import VideoConfig
from regard.models.encoders.vit import ViTConfig
from regard.models.encoders.words import WordsEncoderConfig
from regard.models.layer_depth import freeze
from regard.models.lora import adapt
from regard.models.settings import ModelSettings

ENCODERS: dict[str, type[EncoderSettings]] = {
    "transformer": TransformerEncoderConfig,
    "rnn": RNNEncoderConfig,
    "words": WordsEncoderConfig,
    "bert": BertConfig,
    "patchtst": PatchTSTConfig,
    "vit": ViTConfig,
    "cnn": CNNConfig,
    "speech": SpeechConfig,
    "video": VideoConfig,
}
EncoderConfig = Annotated[EncoderSettings, Choice(ENCODERS)]


class EncodingConfig(ModelSettings):
    """A model with an encoder, which may begin as one that was trained before."""

    init_from: str | None = Field(
        None, description="a run, or a BERT of Hugging Face, whose encoder and vocabulary to start with"
    )
    encoder: EncoderConfig = RNNEncoderConfig()
    freeze: int | None = Field(None, ge=0, description="0: freeze the embeddings; n: the first n layers too")

    lora: int | None = Field(
        None,
        ge=1,
        le=4096,
        description="rank of low-rank adapters that learn in place of the encoder's weights",
    )

    @property
    def n_layers(self) -> int | None:
        """Number of layers in a stack, if the encoder is one."""
        stacks = TransformerEncoderConfig | BertConfig | ViTConfig | SpeechConfig
        return self.encoder.n_layers if isinstance(self.encoder, stacks) else None

    def initialise(self, model: nn.Module, examples: Sequence[Any], task: Any) -> None:
        if self.freeze is not None:
            freeze(model, self.freeze)
        if self.lora is not None:
            adapt(model, self.lora, above=self.freeze or 0)

    @property
    def origin(self) -> str:
        """` from minilm`: the name alone, as others who see a page need not know where it lies."""
        return f" from {Path(self.init_from).name}" if self.init_from else ""

    def describe(self, name: str) -> str:
        """`bert tagger from minilm, d=384`; without the sizes of what has yet to be read."""
        if self.origin and "encoder" not in self.model_fields_set:
            return f"{name}{self.origin}"
        return f"{self.encoder.kind} {name}{self.origin}, d={self.encoder.d_out}"


__all__ = [
    "ENCODERS",
    "Bert",
    "BertConfig",
    "CNNConfig",
    "EncoderConfig",
    "EncoderSettings",
    "EncodingConfig",
    "PatchTSTConfig",
    "RNNEncoderConfig",
    "SpeechConfig",
    "TransformerEncoderConfig",
    "ViTConfig",
    "WordsEncoderConfig",
]
