"""translate: a text in one language in, the same in another out."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from pydantic import Field
from torch import nn

from regard.metrics.text import BleuTokenizer, bleu, chrf
from regard.tasks.pair import Pairs
from regard.tasks.seq2seq import Seq2Seq, Seq2SeqConfig


class TranslateConfig(Seq2SeqConfig):
    kind: Literal["translate"] = "translate"
    bleu_tokenize: BleuTokenizer = Field(
        "13a", description="sacrebleu's; 'zh' for Chinese output, 'none' for tokenised text"
    )


@dataclass(frozen=True)
class TextTally:
    tokenize: BleuTokenizer
    hypotheses: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)

    def __add__(self, other: "TextTally") -> "TextTally":
        return TextTally(
            self.tokenize, self.hypotheses + other.hypotheses, self.references + other.references
        )

    def metrics(self) -> dict[str, float]:
        return {
            "bleu": bleu(self.hypotheses, self.references, self.tokenize)[0],
            "chrf": chrf(self.hypotheses, self.references)[0],
        }

    def signatures(self) -> dict[str, str]:
        return {
            "bleu": bleu(self.hypotheses, self.references, self.tokenize)[1],
            "chrf": chrf(self.hypotheses, self.references)[1],
        }

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}


class Translate(Seq2Seq[TranslateConfig]):
    kind: ClassVar[str] = "translate"
    roles: ClassVar[tuple[str, ...]] = ("source", "target")
    inputs: ClassVar[tuple[str, ...]] = ("source",)
    metric: ClassVar[str] = "bleu"

    def measure(self, model: nn.Module, batch: Pairs, *, thorough: bool) -> TextTally:
        return TextTally(
            self.config.bleu_tokenize,
            self.written(model, batch, thorough=thorough),
            [example.row.fields["target"] for example in batch.examples],
        )
