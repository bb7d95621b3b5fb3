"""Parity engines for classifiers: the most probable label, or every label above a threshold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regard.fields.image import Image
from regard.files.row import Asked, rows_of
from regard.interop.parity import A, Answer, Floats, log_softmax
from regard.tasks import Classify, Multilabel


@dataclass(frozen=True)
class LabelEngine(Generic[A]):
    """Either side as a parity engine."""

    name: str
    labels: Sequence[str]
    threshold: float | None
    """Smallest probability of a predicted label; None predicts the most probable one."""
    logits: Callable[[Sequence[A]], Floats]
    """inputs → logits_BC."""

    def answer(self, inputs: Sequence[A]) -> list[Answer]:
        logits_BC = self.logits(inputs)
        predicted: list[tuple[int, ...]]
        if self.threshold is None:
            predicted = [(best,) for best in logits_BC.argmax(-1).tolist()]
        else:
            likely_BC = np.exp(_log_sigmoid(logits_BC)) >= self.threshold
            predicted = [tuple(np.flatnonzero(row).tolist()) for row in likely_BC]
        return [Answer(", ".join(self.labels[n] for n in label_ids), label_ids) for label_ids in predicted]

    def score(self, inputs: Sequence[A], answers: Sequence[Answer]) -> list[list[float]]:
        """Log-probabilities of all labels; for multilabel, of having each label and of not having it."""
        logits_BC = self.logits(inputs)
        if self.threshold is None:
            log_probs = log_softmax(logits_BC)
        else:
            log_probs = np.concatenate([_log_sigmoid(logits_BC), _log_sigmoid(-logits_BC)], axis=-1)
        scores: list[list[float]] = log_probs.tolist()
        return scores


def _log_sigmoid(logits: Floats) -> Floats:
    log_probs: Floats = -np.logaddexp(0, -logits)
    return log_probs


def pixels_of(field: Image, inputs: Sequence[Asked]) -> NDArray[np.uint8]:
    """Pictures in the size of the field: pixels_BYXC."""
    rows = rows_of(inputs, "picture", fields={"picture": field})
    values = [field.parse(next(iter(row.cells.values())), row.where) for row in rows]
    return np.stack([coded.arrays["pixels"] for coded in field.encode(values)])


def our_engine(task: Classify | Multilabel, model: nn.Module) -> LabelEngine[Asked]:
    """Our classifier as a parity engine."""

    def logits(inputs: Sequence[Asked]) -> Floats:
        rows, device = task.asked(inputs), next(model.parameters()).device
        with torch.inference_mode():
            logits_BC = model(task.collate(task.encode(rows)).to(device).inputs)
        array_BC: Floats = logits_BC.float().cpu().numpy()
        return array_BC

    threshold = task.config.threshold if isinstance(task, Multilabel) else None
    return LabelEngine("regard", task.labels, threshold, logits)
