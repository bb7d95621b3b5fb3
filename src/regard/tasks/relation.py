"""relation: what two marked entities of a sentence have to do with one another; a label with a direction."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import torch
from pydantic import BaseModel, Field
from torch import nn

from regard.data.example import Example
from regard.fields.axis import Axis
from regard.fields.entities import Entities, MarkedText
from regard.fields.field import Input
from regard.metrics.metric import Metric
from regard.metrics.relation import RelationScores
from regard.metrics.resample import Floats, Scores, unweighted
from regard.metrics.tally import Columns
from regard.tasks.classify import Classify, LabelBatch, LabelConfig
from regard.tasks.relation_data import RELATION
from regard.tasks.relation_data import Relation as RelationAnswer
from regard.tasks.task import Axes, Picture
from regard.tasks.task_data import TaskData


class RelationConfig(LabelConfig):
    """A text with two marked entities in, their relation out."""

    kind: Literal["relation"] = "relation"
    max_length: int = Field(
        256,
        ge=8,
        description="tokens and the entities' marks; of longer texts what is near the entities is read",
    )
    no_relation: str = Field(
        "Other", description="the label that says there is none: no part of the score, never told of raw text"
    )
    both_ways: bool = Field(
        False, description="of raw text: ask about two entities in both orders, not only the earlier as e1"
    )

    @property
    def given(self) -> dict[str, Any]:
        return {"text": Entities(self.tokenizer)}

    @property
    def pairing(self) -> dict[str, Any]:
        return {"no_relation": self.no_relation, "both_ways": self.both_ways}


@dataclass(frozen=True)
class RelationTally(Columns):
    none: str
    predicted: list[str]
    gold: list[str]

    @property
    def truth(self) -> list[str]:
        return self.gold

    @cached_property
    def _relations(self) -> RelationScores:
        return RelationScores.of(self.predicted, self.gold, self.none)

    def weighed(self, weights_RN: Floats) -> Scores:
        return self._relations.weighed(weights_RN)

    def metrics(self) -> dict[str, float]:
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        signature = (
            f"mean F1 of relations without {self.none}, right in kind and direction (SemEval-2010 task 8)"
        )
        return {"macro_f1": signature}

    def by_kind(self) -> dict[str, dict[str, float]]:
        return self._relations.by_relation()


class Relation(Classify):
    kind: ClassVar[str] = "relation"
    data: ClassVar[TaskData] = RELATION
    says: ClassVar[str] = (
        "Texts with two marked entities in, relations out; or raw texts and a tagger that finds entities."
    )
    prediction: ClassVar[type[BaseModel]] = RelationAnswer
    route: ClassVar[str] = "relate"
    cut: ClassVar[str] = "what is far from the entities was not read"
    pairs_entities: ClassVar[bool] = True
    settings: ClassVar[type[Any]] = RelationConfig
    models: ClassVar[tuple[str, ...]] = ("relater",)
    called: ClassVar[str] = "a relater"
    sample: ClassVar[str] = "an <e1>entity</e1> and <e2>another</e2>"
    metric = Metric("macro_f1")
    config: RelationConfig

    def joined(self) -> Input:
        return MarkedText(tuple(self.given.values()), self.config.max_length)

    @staticmethod
    def spoken(value: Any) -> str:
        return str(value.text)

    def tally(self, examples: Sequence[Example], answers: Sequence[Any]) -> RelationTally:
        tally = super().tally(examples, answers)
        return RelationTally(self.config.no_relation, tally.predicted, tally.gold)

    def axes(self, example: Example, prediction: Any) -> Axes:
        axes = super().axes(example, prediction)
        by_name = axes.by_name | {
            "label": Axis("relation", (prediction.text,), unit="label"),
            "labels": Axis("relations", self.labels, unit="label"),
        }
        return replace(axes, by_name=by_name)

    def pictures(self, model: nn.Module, batch: LabelBatch) -> list[Picture]:
        likely_1C = torch.softmax(model(batch.inputs), dim=-1)
        return [Picture("labels", "probability: each relation", likely_1C, "label", "labels")]
