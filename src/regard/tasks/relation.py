"""relation: what two marked entities of a sentence have to do with one another; a label with a direction."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from regard.fields.axis import Axis, ended
from regard.files.row import Row
from regard.metrics.metric import Metric
from regard.metrics.relation import Relations
from regard.metrics.resample import Floats, Scores, plainly
from regard.models.relater import N_MARKS
from regard.models.widths import Widths
from regard.tasks.classify import Classify, LabelConfig
from regard.tasks.entities import Placed, placed
from regard.tasks.labelled import Label, Text, Texts
from regard.tasks.shared import Columns
from regard.tasks.task import Axes, Picture
from regard.text.marked import MARKS, Marked, read_marked
from regard.text.tokenizer import Tokenizer

BLANK = Marked("", (0, 0), (0, 0))


class RelationConfig(LabelConfig):
    kind: Literal["relation"] = "relation"
    max_length: int = Field(
        256,
        ge=8,
        description="pieces and the entities' marks; of longer texts what is near the entities is read",
    )
    no_relation: str = Field(
        "Other", description="the label that says there is none: no part of the score, never told of raw text"
    )
    both_ways: bool = Field(
        False, description="of raw text: ask about two entities in both orders, not only the earlier as e1"
    )


@dataclass(frozen=True)
class RelationTally(Columns):
    none: str
    predicted: list[str]
    gold: list[str]

    @property
    def truth(self) -> list[str]:
        return self.gold

    @cached_property
    def _relations(self) -> Relations:
        return Relations.of(self.predicted, self.gold, self.none)

    def weighed(self, weights_RN: Floats) -> Scores:
        return self._relations.weighed(weights_RN)

    def metrics(self) -> dict[str, float]:
        return plainly(self)

    def signatures(self) -> dict[str, str]:
        told = f"mean F1 of relations without {self.none}, right in kind and direction (SemEval-2010 task 8)"
        return {"macro_f1": told}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return self._relations.by_relation()


class Relation(Classify):
    kind: ClassVar[str] = "relation"
    settings: ClassVar[type[Any]] = RelationConfig
    models: ClassVar[tuple[str, ...]] = ("relater",)
    called: ClassVar[str] = "a relater"
    sample: ClassVar[str] = "an <e1>entity</e1> and <e2>another</e2>"
    metric = Metric("macro_f1")
    config: RelationConfig

    def __init__(
        self,
        config: RelationConfig,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        weights: Sequence[float] | None = None,
    ) -> None:
        super().__init__(config, tokenizer, labels, weights)
        self.first_mark = len(tokenizer)
        """Of the entities' four, which are pieces beyond the vocabulary: no text can spell them."""
        self.widths = Widths({"vocab": len(tokenizer) + N_MARKS}, {"classes": len(self.labels)})

    @classmethod
    def spoken(cls, row: Row) -> str:
        return _marked(row).text

    def encode(self, rows: Sequence[Row]) -> list[Text]:
        return [self._sentence(row) for row in rows]

    def _sentence(self, row: Row) -> Text:
        found = self._placed(row)
        return Text(row, np.array(self.tokenizer.framed(found.ids)), self.index(row), cut=found.cut)

    def _placed(self, row: Row) -> Placed:
        return placed(_marked(row), self.tokenizer.encode, self.first_mark, self.config.max_length)

    def usable(self, example: Text) -> bool:
        return len(example.tokens) > len(self.tokenizer.framed(())) + len(MARKS)

    def measure(self, model: nn.Module, batch: Texts, *, thorough: bool) -> RelationTally:  # type: ignore[override]
        found = super().measure(model, batch, thorough=thorough)
        return RelationTally(self.config.no_relation, found.predicted, found.gold)

    def stays(self, tokens_1T: Tensor, pieces: Sequence[int]) -> Tensor:
        """The entities' marks too: the text cannot be read without them."""
        is_mark_B = tokens_1T[0, list(pieces)] >= self.first_mark
        return super().stays(tokens_1T, pieces) | is_mark_B

    def axes(self, example: Text, prediction: Label) -> Axes:
        marks = self.tokenizer.pieces(self.tokenizer.framed(()))
        found = self._placed(example.row)
        words = (*marks[:-1], *self.tokenizer.shown(found.ids, found.words), marks[-1])
        by_name = {
            "text": ended("text", words),
            "label": Axis("relation", (prediction.text,), unit="label"),
            "labels": Axis("relations", self.labels, unit="label"),
        }
        return replace(super().axes(example, prediction), by_name=by_name)

    def pictures(self, model: nn.Module, batch: Texts) -> list[Picture]:
        likely_1C = torch.softmax(self.logits(model, batch), dim=-1)
        return [Picture("labels", "probability: each relation", likely_1C, "label", "labels")]


def _marked(row: Row) -> Marked:
    text = row.cells["text"]
    return read_marked(text, row.where) if text.strip() else BLANK
