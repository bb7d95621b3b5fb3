"""Both sides of a comparison of models that give labels: the likeliest, or all that are likely enough."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
import torch
from torch import nn

from regard.files.row import Asked, rows_of
from regard.interop.parity import A, Answer, Floats, log_softmax
from regard.tasks import Classify, Multilabel


@dataclass(frozen=True)
class Side(Generic[A]):
    name: str
    labels: Sequence[str]
    threshold: float | None
    """The probability from which a label is given; None: the likeliest is."""
    logits: Callable[[Sequence[A]], Floats]
    """logits_BC of what is asked."""

    def answer(self, asked: Sequence[A]) -> list[Answer]:
        logits_BC = self.logits(asked)
        given: list[tuple[int, ...]]
        if self.threshold is None:
            given = [(best,) for best in logits_BC.argmax(-1).tolist()]
        else:
            likely_BC = np.exp(_log_sigmoid(logits_BC)) >= self.threshold
            given = [tuple(np.flatnonzero(row).tolist()) for row in likely_BC]
        return [Answer(", ".join(self.labels[n] for n in own), own) for own in given]

    def score(self, asked: Sequence[A], answers: Sequence[Answer]) -> list[list[float]]:
        """Of several labels: of having each, and of not having it."""
        logits_BC = self.logits(asked)
        if self.threshold is None:
            log_probs = log_softmax(logits_BC)
        else:
            log_probs = np.concatenate([_log_sigmoid(logits_BC), _log_sigmoid(-logits_BC)], axis=-1)
        scores: list[list[float]] = log_probs.tolist()
        return scores


def _log_sigmoid(logits: Floats) -> Floats:
    log_probs: Floats = -np.logaddexp(0, -logits)
    return log_probs


def here(task: Classify | Multilabel, model: nn.Module) -> Side[Asked]:
    def logits(asked: Sequence[Asked]) -> Floats:
        rows, device = rows_of(asked, *task.inputs), next(model.parameters()).device
        with torch.inference_mode():
            if isinstance(task, Classify):
                told_BC = task.logits(model, task.collate(task.encode(rows)).to(device))
            else:
                batch = task.collate(task.encode(rows)).to(device)
                told_BC = model(batch.tokens_BT, batch.lengths_B)
        found: Floats = told_BC.float().cpu().numpy()
        return found

    threshold = task.config.threshold if isinstance(task, Multilabel) else None
    return Side("regard", task.labels, threshold, logits)
