"""translate: a text in one language in, the same in another out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from torch import nn

from regard.baselines import Baseline
from regard.baselines.generation import Copy, Nearest
from regard.data.example import Example
from regard.metrics.metric import Metric
from regard.metrics.resample import Floats, Scores, unweighted
from regard.metrics.tally import Columns
from regard.metrics.text import BleuTokenizer, SentenceCounts, bleu, chrf, counted, scored, signature
from regard.tasks.prediction import OTHERS, Written
from regard.tasks.seq2seq import Seq2Seq, Seq2SeqBatch, Seq2SeqConfig
from regard.tasks.task_data import TaskData
from regard.tasks.translate_data import TRANSLATE


class TranslateConfig(Seq2SeqConfig):
    """A text in, a text out."""

    kind: Literal["translate"] = "translate"
    roles: ClassVar[tuple[str, ...]] = ("source", "target")
    inputs: ClassVar[tuple[str, ...]] = ("source",)
    bleu_tokenize: BleuTokenizer = Field(
        "13a", description="sacrebleu's; 'zh' for Chinese output, 'none' for tokenised text"
    )


@dataclass(frozen=True)
class TextTally(Columns):
    """`bleu` and `chrf` are what these count in every pair of texts."""

    tokenize: BleuTokenizer
    hypotheses: list[str]
    references: list[str]
    bleu: SentenceCounts
    chrf: SentenceCounts

    @classmethod
    def of(cls, tokenize: BleuTokenizer, hypotheses: list[str], references: list[str]) -> "TextTally":
        counts = (counted(metric, hypotheses, references) for metric in (bleu(tokenize), chrf()))
        return cls(tokenize, hypotheses, references, *counts)

    @property
    def truth(self) -> list[str]:
        return self.references

    def weighed(self, weights_RN: Floats) -> Scores:
        return {
            "bleu": scored(bleu(self.tokenize), weights_RN @ np.array(self.bleu, np.float64)),
            "chrf": scored(chrf(), weights_RN @ np.array(self.chrf, np.float64)),
        }

    def metrics(self) -> dict[str, float]:
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        return {"bleu": signature(bleu(self.tokenize)), "chrf": signature(chrf())}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return {}


class Translation(Written):
    others: tuple["Translation", ...] = OTHERS


class Translate(Seq2Seq[TranslateConfig]):
    kind: ClassVar[str] = "translate"
    data: ClassVar[TaskData] = TRANSLATE
    says: ClassVar[str] = (
        "Texts in, texts out; with `stream`, events `text` (how it begins) and one `answer` or `error`."
    )
    prediction: ClassVar[type[Written]] = Translation
    settings: ClassVar[type[Any]] = TranslateConfig
    metric = Metric("bleu")
    baselines: ClassVar[tuple[type[Baseline], ...]] = (Copy, Nearest)

    def measure(self, model: nn.Module, batch: Seq2SeqBatch, *, thorough: bool) -> TextTally:
        return self.tally(batch.examples, self.texts(model, batch, thorough=thorough))

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> TextTally:
        """The tally of texts."""
        references = [example.row.cells["target"] for example in examples]
        return TextTally.of(self.config.bleu_tokenize, [*answers], references)
