"""Memory and time that training will take, measured by a few seconds of it."""

import resource
import time
from dataclasses import dataclass

import torch

from regard.check.finding import Finding
from regard.training.config import TrainConfig
from regard.training.loop import update
from regard.training.machine import Machine
from regard.training.micro_batches import find_micro_batches, is_memory_error
from regard.training.state import Training

REMEDY = 'take a smaller model, or let train.batch_tokens = "auto" or train.accumulate split batches'
BUDGET = 5.0
"""Seconds of measuring, the first step not counted."""


@dataclass(frozen=True)
class Estimate:
    parameters: int
    steps_per_epoch: int
    seconds_per_epoch: float
    """Training only: validation comes on top."""
    memory: int
    """Bytes at most so far, of this process or on the device, with the largest batch."""
    total_seconds: float | None
    """Seconds until the nearest of the recipe's limits, if it has any but patience."""
    measured_steps: int
    device: str


def too_big(needed: int) -> list[Finding]:
    """A finding when training cannot fit, or hardly."""
    held = Machine.here().memory
    message = f"training needs {needed / 1e9:.1f} GB of memory, this machine has {held / 1e9:.1f} GB"
    if needed > held:
        return [Finding("error", "memory", f"{message}; {REMEDY}")]
    if needed > 0.8 * held:
        return [Finding("warning", "memory", f"{message}, which is close; {REMEDY}")]
    return []


def measured(training: Training, share: float) -> Estimate | Finding:
    """Measure what training takes, or report that it does not fit."""
    try:
        return estimate(training, share)
    except (RuntimeError, MemoryError) as error:
        if not is_memory_error(error):
            raise
        why = str(error).partition("\n")[0]
        return Finding("error", "memory", f"the largest batch does not fit into memory ({why}); {REMEDY}")


def estimate(training: Training, share: float = 1.0) -> Estimate:
    """Train for a few seconds, the largest batch first; the model is not to be used afterwards.

    `share` is how much of the training data the training has.
    """
    batches = list(training.order.epoch(0))
    costs = [len(batch) * int(training.train.sizes[batch].max()) for batch in batches]
    largest = costs.index(max(costs))
    training.model.train()
    if training.plan.batch_tokens == "auto":
        training.advance(parts=find_micro_batches(training))
    update(training, training.rank_batch(batches[largest]), 1, training.plan.lr)
    seconds, cost, steps = 0.0, 0, 0
    while steps < 2 or (seconds < BUDGET and steps < len(batches)):
        at = steps % len(batches)
        began = time.perf_counter()
        update(training, training.rank_batch(batches[at]), steps + 2, training.plan.lr)
        seconds, cost, steps = seconds + time.perf_counter() - began, cost + costs[at], steps + 1
    steps_per_epoch, per_epoch = round(len(batches) / share), seconds / cost * sum(costs) / share
    return Estimate(
        parameters=sum(parameter.numel() for parameter in training.model.parameters()),
        steps_per_epoch=steps_per_epoch,
        seconds_per_epoch=per_epoch,
        memory=_peak(training.device),
        total_seconds=_total(training.plan, per_epoch, steps_per_epoch),
        measured_steps=steps,
        device=str(training.device),
    )


def _peak(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _total(plan: TrainConfig, per_epoch: float, steps_per_epoch: int) -> float | None:
    limits = [
        plan.max_minutes and 60 * plan.max_minutes,
        plan.max_epochs and plan.max_epochs * per_epoch,
        plan.max_steps and plan.max_steps / steps_per_epoch * per_epoch,
    ]
    return min((limit for limit in limits if limit), default=None)
