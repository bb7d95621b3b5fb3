"""Learning-rate schedules, as functions of the step (counted from 1)."""

import math

from regard.training.config import TrainConfig


def learning_rate(plan: TrainConfig, step: int, *, d_model: int, total_steps: int | None) -> float:
    """Learning rate of a step; every schedule but the paper's warms up linearly to `lr`.

    The paper's is lr · d_model^−½ · min(t^−½, t · warmup^−3/2).
    """
    warmup = max(1, plan.warmup)
    if plan.schedule == "paper":
        return float(plan.lr * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
    if step < warmup:
        return plan.lr * step / warmup
    if plan.schedule == "constant":
        return plan.lr
    if plan.schedule == "inverse_sqrt":
        return plan.lr * math.sqrt(warmup / step)
    assert total_steps is not None
    done = min(1.0, (step - warmup) / max(1, total_steps - warmup))
    if plan.schedule == "linear":
        return plan.lr * (1 - done)
    return plan.lr * 0.5 * (1 + math.cos(math.pi * done))
