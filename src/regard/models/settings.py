"""Base class of the configuration of every model: what it can do beside building it."""

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import nn

from regard.config import Config


class ModelSettings(Config):
    reads_answer: ClassVar[bool] = False
    """True if the model reads its input and its answer as one sequence, as a decoder alone does."""

    def initialise(self, model: nn.Module, examples: Sequence[Any], task: Any) -> None:
        """Makes a new model ready to learn from these examples, after pretrained weights are in place.

        What can be counted is counted here, and what shall not learn is frozen.
        """
