"""classify_pair: one label for two texts that are read together, such as a premise and a hypothesis.

A BERT tells them apart by segments; other encoders see the mark between them.
"""

from typing import Any, ClassVar, Literal

from pydantic import Field

from regard.fields.field import Input
from regard.fields.joined import Joined
from regard.fields.text import Text
from regard.tasks.classify import Classify, LabelConfig


class ClassifyPairConfig(LabelConfig):
    kind: Literal["classify_pair"] = "classify_pair"
    max_length: int = Field(
        256, ge=4, description="pieces of both texts and the mark between them; the longer one is cut first"
    )

    @property
    def given(self) -> dict[str, Any]:
        return {"text": Text(self.tokenizer), "second": Text(self.tokenizer)}


class ClassifyPair(Classify):
    kind: ClassVar[str] = "classify_pair"
    settings: ClassVar[type[Any]] = ClassifyPairConfig

    def joined(self) -> Input:
        return Joined(tuple(self.given.values()), self.config.max_length)
