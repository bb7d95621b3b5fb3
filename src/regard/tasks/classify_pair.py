"""classify_pair: one label for two texts that are read together, such as a premise and a hypothesis.

A BERT tells them apart by segments; other encoders see the mark between them.
"""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from regard.fields.field import Input
from regard.fields.joined import Joined
from regard.fields.text import Text
from regard.tasks.classify import Classify, LabelConfig, LabelPrediction
from regard.tasks.classify_pair_data import CLASSIFY_PAIR
from regard.tasks.task_data import TaskData


class ClassifyPairConfig(LabelConfig):
    """Two texts in, one label out."""

    kind: Literal["classify_pair"] = "classify_pair"
    max_length: int = Field(
        256, ge=4, description="tokens of both texts and the mark between them; the longer one is cut first"
    )

    @property
    def given(self) -> dict[str, Any]:
        return {"text": Text(self.tokenizer), "second": Text(self.tokenizer)}


class PairLabel(LabelPrediction):
    pass


class ClassifyPair(Classify):
    kind: ClassVar[str] = "classify_pair"
    data: ClassVar[TaskData] = CLASSIFY_PAIR
    says: ClassVar[str] = "Pairs of texts in, labels with their probabilities out."
    prediction: ClassVar[type[BaseModel]] = PairLabel
    settings: ClassVar[type[Any]] = ClassifyPairConfig

    def joined(self) -> Input:
        return Joined(tuple(self.given.values()), self.config.max_length)
