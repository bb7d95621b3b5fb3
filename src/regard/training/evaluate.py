"""Evaluation: loss and metrics on some examples, the same in training, at its end and in `regard eval`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.data.batching import sorted_batches
from regard.metrics.resample import Weighable
from regard.tasks.task import Tally, Task, evaluating


def evaluate(
    task: Task,
    model: nn.Module,
    examples: Sequence[Any],
    device: torch.device,
    *,
    thorough: bool,
    batch_tokens: int = 4096,
    tick: Callable[[int], None] = lambda done: None,
) -> tuple[dict[str, float], Tally]:
    """Metrics by name ("loss" is per token or text, without label smoothing), and their tally.

    A tally that can be resampled is put into the order of the examples, so that two of them are comparable.
    """
    sizes = [task.size(example) for example in examples]
    losses: dict[str, float] = {}
    counts: dict[str, int] = {}
    order: list[int] = []
    tally: Tally | None = None
    with evaluating(model):
        for indices in sorted_batches(sizes, batch_tokens, task.max_batch_rows):
            batch = task.collate([examples[i] for i in indices]).to(device)
            part = task.measure(model, batch, thorough=thorough)
            tally = part if tally is None else tally + part
            if not part.has_loss:
                loss = task.loss(model, batch)
                for name, count in batch.counts.items():
                    losses[name] = losses.get(name, 0.0) + float(loss.shown[name])
                    counts[name] = counts.get(name, 0) + count
            order += indices
            tick(len(indices))
    assert tally is not None, "nothing to evaluate"
    if isinstance(tally, Weighable):
        tally = tally.taken(np.argsort(order).tolist())
    if tally.has_loss:
        return tally.metrics(), tally
    loss_sum = sum(losses[name] / max(1, counts[name]) for name in losses)
    return {"loss": loss_sum, **tally.metrics()}, tally
