"""The metric that decides which checkpoint is best."""

from typing import NamedTuple


class Metric(NamedTuple):
    name: str
    higher: bool = True
    """Whether a higher score is a better one."""

    def is_better(self, score: float, than: float) -> bool:
        return score > than if self.higher else score < than

    def is_nearly(self, score: float, best: float, tolerance: float) -> bool:
        """Whether a score is as good as the best one, or worse by no more than this share of it."""
        if self.higher:
            return score >= (1 - tolerance) * best
        return score <= (1 + tolerance) * best
