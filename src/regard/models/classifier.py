"""A text classifier: an encoder (recurrent, Transformer or BERT), pooled to one vector, mapped to classes.

`encoder.kind = "words"` has no encoder at all: the pooling looks at the words themselves. Its weights are
then honest about words, where a recurrent encoder has already mixed them (Jain & Wallace 2019 measure the
difference), at some cost in accuracy.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor, nn

from regard.attention import padding
from regard.config import Config
from regard.layers.block import BlockConfig
from regard.layers.dropout import Dropout
from regard.layers.embed import Embed
from regard.layers.pooling import PoolingKind, pooling
from regard.layers.recurrent import CellKind, Recurrent
from regard.layers.stack import Stack, embedding, positions_like
from regard.linear import Linear
from regard.models.bert import Bert, BertConfig
from regard.models.widths import Widths


class TransformerEncoderConfig(BlockConfig):
    kind: Literal["transformer"] = "transformer"
    d_model: int = Field(128, ge=1)
    d_ff: int = Field(256, ge=1)
    n_layers: int = Field(2, ge=1, le=512)

    @property
    def d_out(self) -> int:
        return self.d_model

    def build(self, n_tokens: int) -> "TransformerEncoder":
        return TransformerEncoder(self, n_tokens)


class TransformerEncoder(nn.Module):
    def __init__(self, config: TransformerEncoderConfig, n_tokens: int) -> None:
        super().__init__()
        self.embed = embedding(config, n_tokens)
        self.stack = Stack(config, config.n_layers)

    def forward(self, tokens_BT: Tensor, lengths_B: Tensor) -> Tensor:
        x_BTD = self.embed(tokens_BT, positions_like(tokens_BT))
        states_BTD: Tensor = self.stack(x_BTD, mask=padding(lengths_B))[0]
        return states_BTD


class RNNEncoderConfig(Config):
    kind: Literal["rnn"] = "rnn"
    cell: CellKind = "lstm"
    d_embed: int = Field(128, ge=1)
    d_hidden: int = Field(128, ge=2, multiple_of=2, description="of both directions together")
    n_layers: int = Field(1, ge=1, le=512)
    bidirectional: bool = True
    dropout: float = Field(0.3, ge=0, lt=1)
    word_dropout: float = Field(0.0, ge=0, lt=1, description="hides whole pieces in training")

    @property
    def d_out(self) -> int:
        return self.d_hidden

    def build(self, n_tokens: int) -> "RNNEncoder":
        return RNNEncoder(self, n_tokens)


class RNNEncoder(nn.Module):
    def __init__(self, config: RNNEncoderConfig, n_tokens: int) -> None:
        super().__init__()
        self.embed = Embed(
            n_tokens,
            config.d_embed,
            scale=False,
            dropout=config.dropout,
            word_dropout=config.word_dropout,
        )
        self.recurrent = Recurrent(
            config.cell,
            config.d_embed,
            config.d_hidden,
            config.n_layers,
            bidirectional=config.bidirectional,
            dropout=config.dropout,
        )

    def forward(self, tokens_BT: Tensor, lengths_B: Tensor) -> Tensor:
        states_BTD: Tensor = self.recurrent(self.embed(tokens_BT, positions_like(tokens_BT)), lengths_B)[0]
        return states_BTD


class WordsEncoderConfig(Config):
    kind: Literal["words"] = "words"
    d_embed: int = Field(128, ge=1)
    dropout: float = Field(0.3, ge=0, lt=1)

    @property
    def d_out(self) -> int:
        return self.d_embed

    def build(self, n_tokens: int) -> "WordsEncoder":
        return WordsEncoder(self, n_tokens)


class WordsEncoder(nn.Module):
    def __init__(self, config: WordsEncoderConfig, n_tokens: int) -> None:
        super().__init__()
        self.embed = Embed(n_tokens, config.d_embed, scale=False, dropout=config.dropout)

    def forward(self, tokens_BT: Tensor, lengths_B: Tensor) -> Tensor:
        x_BTD: Tensor = self.embed(tokens_BT, positions_like(tokens_BT))
        return x_BTD


EncoderConfig = Annotated[
    TransformerEncoderConfig | RNNEncoderConfig | WordsEncoderConfig | BertConfig, Field(discriminator="kind")
]


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


class ClassifierConfig(EncodingConfig):
    kind: Literal["classifier"] = "classifier"
    pooling: PoolingKind = "attention"
    dropout: float = Field(0.3, ge=0, lt=1, description="before the last map")

    @property
    def d_model(self) -> int:
        return self.encoder.d_out

    def build(self, widths: Widths) -> "Classifier":
        return Classifier(self, widths)

    def __str__(self) -> str:
        return f"{self.describe('classifier')}, {self.pooling} pooling"


class Classifier(nn.Module):
    def __init__(self, config: ClassifierConfig, widths: Widths) -> None:
        super().__init__()
        self.encoder = config.encoder.build(widths.input["vocab"])
        d_out = config.encoder.d_out
        self.pooling = pooling(config.pooling, d_out)
        self.dropout = Dropout(config.dropout)
        self.output = Linear(d_out, widths.target["classes"])

    def forward(self, tokens_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor | None = None) -> Tensor:
        """logits_BC; segments are for an encoder that tells them apart, others see the mark between texts."""
        told = (segments_BT,) if isinstance(self.encoder, Bert) else ()
        pooled_BD = self.pooling(self.encoder(tokens_BT, lengths_B, *told), lengths_B)
        logits_BC: Tensor = self.output(self.dropout(pooled_BD))
        return logits_BC
