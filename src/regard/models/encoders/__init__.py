"""One file = one encoder. ENCODERS is the table a recipe chooses from."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from regard.config import Choice, Config
from regard.models.encoders.bert import Bert, BertConfig
from regard.models.encoders.encoder import EncoderSettings
from regard.models.encoders.rnn import RNNEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.encoders.words import WordsEncoderConfig

ENCODERS: dict[str, type[EncoderSettings]] = {
    "transformer": TransformerEncoderConfig,
    "rnn": RNNEncoderConfig,
    "words": WordsEncoderConfig,
    "bert": BertConfig,
}
EncoderConfig = Annotated[EncoderSettings, Choice(ENCODERS)]


class EncodingConfig(Config):
    """A model with an encoder, which may begin as one that was trained before."""

    init_from: str | None = Field(
        None, description="a run, or a BERT of Hugging Face: its encoder and its vocabulary to begin with"
    )
    encoder: EncoderConfig = RNNEncoderConfig()
    freeze: int | None = Field(
        None, ge=0, description="0: the embeddings stay as they begin; n: the first n layers too"
    )

    lora: int | None = Field(
        None, ge=1, le=4096, description="rank of changes that learn in place of the encoder's own weights"
    )

    @property
    def n_layers(self) -> int | None:
        """That lie one above the other with a height each, if the encoder is made of such."""
        encoder = self.encoder
        return encoder.n_layers if isinstance(encoder, TransformerEncoderConfig | BertConfig) else None

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
    "EncoderConfig",
    "EncoderSettings",
    "EncodingConfig",
    "RNNEncoderConfig",
    "TransformerEncoderConfig",
    "WordsEncoderConfig",
]
