"""A classifier: an encoder of any kind of input, pooled to one vector, mapped to classes."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field
from torch import Tensor, nn

from regard.fields.axis import Axis
from regard.layers.dropout import Dropout
from regard.layers.inputs import Inputs
from regard.layers.ngrams import Ngrams, NgramsConfig
from regard.layers.pooling import PoolingKind, pooling
from regard.linear import Linear
from regard.models.encoders import EncodingConfig
from regard.models.widths import Widths

MOST_COUNTED, COUNTED_AT_ONCE = 50_000, 64


class ClassifierConfig(EncodingConfig):
    kind: Literal["classifier"] = "classifier"
    pooling: PoolingKind = "attention"
    dropout: float = Field(0.3, ge=0, lt=1, description="before the last map")
    ngrams: NgramsConfig | None = Field(
        None, description="what n-grams of tokens say by themselves is added, as in a table `[model.ngrams]`"
    )

    @property
    def d_model(self) -> int:
        return self.encoder.d_out

    def build(self, widths: Widths) -> "Classifier":
        return Classifier(self, widths)

    def initialise(self, model: nn.Module, examples: Sequence[Any], task: Any) -> None:
        """Counts which n-grams are rare among the examples, or a fair sample of them."""
        if self.ngrams is not None:
            assert isinstance(model, Classifier)
            assert model.ngrams is not None
            (tokenizer,) = task.tokenizers.values()
            model.ngrams.spell(tokenizer.spellings)
            counted = range(0, len(examples), 1 + len(examples) // MOST_COUNTED)
            chunks = (counted[at : at + COUNTED_AT_ONCE] for at in range(0, len(counted), COUNTED_AT_ONCE))
            model.ngrams.count(task.collate([examples[place] for place in chunk]).inputs for chunk in chunks)
        super().initialise(model, examples, task)

    def __str__(self) -> str:
        return f"{self.describe('classifier')}, {self.pooling} pooling"


class Classifier(nn.Module):
    def __init__(self, config: ClassifierConfig, widths: Widths) -> None:
        super().__init__()
        self.config = config
        self.encoder = config.encoder.build(widths.input)
        d_out = config.encoder.d_out
        self.pooling = pooling(config.pooling, d_out)
        self.dropout = Dropout(config.dropout)
        self.output = Linear(d_out, widths.target["classes"])
        self.ngrams = (
            None
            if config.ngrams is None
            else Ngrams(config.ngrams, widths.target["classes"], widths.input["vocab"])
        )

    def forward(self, inputs: Inputs) -> Tensor:
        """logits_BC of any input that the encoder reads."""
        encoded = self.encoder(inputs)
        pooled_BD = self.pooling(encoded.states_RTD, encoded.lengths_R)
        logits_BC: Tensor = self.output(self.dropout(pooled_BD))
        return logits_BC if self.ngrams is None else logits_BC + self.ngrams(inputs)

    def positions(self, axis: Axis) -> Axis:
        """The axis of the encoder's states."""
        return self.config.encoder.positions(axis)
