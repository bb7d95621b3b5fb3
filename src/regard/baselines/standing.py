"""Scores of baselines and the comparison of a model with the best of them, as kept in metrics.json."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

Numbers = Mapping[str, float | None]
"""Scores by metric; None for infinite ones."""


class Standing(BaseModel):
    model_config = ConfigDict(frozen=True)

    split: str = ""
    learnt_from: int = 0
    """Training rows that the baselines learnt from."""
    of: int = 0
    """All training rows."""
    metric: str = ""
    """The metric that the task is judged by."""
    scores: Mapping[str, Numbers] = {}
    """Scores by baseline."""
    intervals: Mapping[str, Mapping[str, tuple[float, float]]] = {}
    seconds: Mapping[str, float] = {}
    notes: tuple[str, ...] = ()
    """Reasons why some baselines were not measured, a sentence each."""
    best: str = ""
    difference: tuple[float, float, float] | None = None
    """Difference of the model from the best baseline, and the ends of its interval."""
    p: float | None = None
    verdict: str = ""
    is_beaten: bool = False
    """True if the model is significantly better than every baseline."""
