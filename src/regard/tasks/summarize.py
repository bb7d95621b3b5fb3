"""summarize: a document in, a shorter text that says the same out.

Of a long document the beginning is read, in training too. A summary is mostly made of the document's words,
so both sides have one vocabulary unless the recipe says otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import nn

from regard.baselines import Baseline
from regard.baselines.generation import Copy, Lead, Nearest
from regard.data.example import Example
from regard.metrics.metric import Metric
from regard.metrics.resample import Floats, Scores, unweighted
from regard.metrics.rouge import SIGNATURE, Rouge, lead, mean, rouge
from regard.metrics.tally import Columns
from regard.tasks.prediction import OTHERS, Written
from regard.tasks.seq2seq import Seq2Seq, Seq2SeqBatch, Seq2SeqConfig
from regard.tasks.summarize_data import SUMMARIZE
from regard.tasks.task_data import TaskData

LEAD = 10
"""Words of the document that stand for a summary, as the score to beat."""


class SummarizeConfig(Seq2SeqConfig):
    """A document in, a summary out."""

    kind: Literal["summarize"] = "summarize"
    roles: ClassVar[tuple[str, ...]] = ("document", "summary")
    inputs: ClassVar[tuple[str, ...]] = ("document",)
    joint: bool = Field(True, description="one vocabulary for documents and summaries")
    max_length: int = Field(
        256,
        ge=4,
        description="tokens; of longer documents the rest is not read, longer summaries are left out",
    )


@dataclass(frozen=True)
class SummaryTally(Columns):
    """Scores of every summary, and those that the beginning of its document would have."""

    references: list[str]
    scores: list[Rouge]
    leads: list[Rouge]

    @property
    def truth(self) -> list[str]:
        return self.references

    def weighed(self, weights_RN: Floats) -> Scores:
        return mean(self.scores, weights_RN)

    def metrics(self) -> dict[str, float]:
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        return {"rouge": SIGNATURE}

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Scores that the beginning of each document would have, to stand beside the summaries."""
        first = unweighted(replace(self, scores=self.leads))
        return {"summaries": self.metrics(), f"first {LEAD} words": first}


class Summary(Written):
    others: tuple["Summary", ...] = OTHERS


class Summarize(Seq2Seq[SummarizeConfig]):
    kind: ClassVar[str] = "summarize"
    data: ClassVar[TaskData] = SUMMARIZE
    says: ClassVar[str] = "Documents in, summaries out; with `stream`, events as for /v1/translate."
    prediction: ClassVar[type[Written]] = Summary
    settings: ClassVar[type[Any]] = SummarizeConfig
    metric = Metric("rougeL")
    baselines: ClassVar[tuple[type[Baseline], ...]] = (Copy, Lead, Nearest)
    learns_from_cut: ClassVar[bool] = True

    def measure(self, model: nn.Module, batch: Seq2SeqBatch, *, thorough: bool) -> SummaryTally:
        return self.tally(batch.examples, self.texts(model, batch, thorough=thorough))

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> SummaryTally:
        """The tally of texts."""
        documents, references = ([example.row.cells[role] for example in examples] for role in self.roles)
        return SummaryTally(
            references,
            list(map(rouge, answers, references)),
            [
                rouge(lead(document, LEAD), right)
                for document, right in zip(documents, references, strict=True)
            ],
        )
