"""What baselines scored, and how a model stands beside the best of them, as metrics.json keeps it."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

Numbers = Mapping[str, float | None]
"""By metric; None for what is infinite."""


class Standing(BaseModel):
    model_config = ConfigDict(frozen=True)

    split: str = ""
    learnt_from: int = 0
    """Rows of the training data."""
    of: int = 0
    """How many there are."""
    metric: str = ""
    """The one that the task is judged by."""
    scores: Mapping[str, Numbers] = {}
    """By baseline."""
    intervals: Mapping[str, Mapping[str, tuple[float, float]]] = {}
    seconds: Mapping[str, float] = {}
    notes: tuple[str, ...] = ()
    """Why some were not measured, a sentence each."""
    best: str = ""
    difference: tuple[float, float, float] | None = None
    """How much the model is above the best, and the ends of the interval."""
    p: float | None = None
    verdict: str = ""

    @property
    def is_beaten(self) -> bool:
        """Whether the model is above every baseline, and not by chance."""
        return self.verdict.startswith("above")
