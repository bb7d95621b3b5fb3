"""The training loop: a generator of events. It writes checkpoints; all else belongs to the caller's for-loop.

A step is a pure function of (seed, step) and the weights: the global batch is defined by `data.batching`, and
dropout's generator is seeded per step. Loss sums are divided by the counts of the whole global batch, so
splitting it into micro-batches changes nothing.
"""

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.training.checkpoint import Progress
from regard.training.checkpointing import BAD_UPDATES, choose_weights, roll_back, save
from regard.training.config import TrainConfig
from regard.training.events import Evaluated, Event, Scoring, Skipped, Split, Step
from regard.training.micro_batches import double_micro_batches, find_micro_batches, is_memory_error
from regard.training.precision import autocast
from regard.training.ranks import full_tensor
from regard.training.schedule import learning_rate
from regard.training.state import RECENT, RankBatch, Training
from regard.training.stopping import Interrupted

COUNTED = "all was counted"
"""Reason why a model without gradient steps is done: its weights are counts."""


def run(training: Training) -> Iterator[Event]:
    """Train until a limit is reached; the model is left with the weights that validated best."""
    plan = training.plan
    training.started = time.perf_counter()
    training.model.train()
    with training.stop.deferred():
        try:
            if training.saved_at is None:
                if plan.batch_tokens == "auto" and training.learns_by_steps:
                    training.advance(parts=find_micro_batches(training))
                    yield Split(0, training.n_micro_batches)
                yield from save(training)
            while True:
                reason = _limit(plan, training.progress) if training.learns_by_steps else COUNTED
                if not training.progress.validated and (reason or _validation_due(plan, training.progress)):
                    yield from _validate(training)
                reason = reason or _out_of_patience(plan, training.progress)
                if reason:
                    break
                if _save_due(training):
                    yield from save(training)
                training.synchronize()
                if training.signal:
                    raise Interrupted(training.signal)
                yield from _step(training)
        except Interrupted:
            between_steps = training.stop.thrown is None
            if between_steps and training.saved_at != training.progress.step:
                yield from save(training)
            raise
    if training.ranks.first or training.is_sharded:
        yield Scoring(training.progress.step, "valid")
        yield choose_weights(training, reason)


def _step(training: Training) -> Iterator[Event]:
    progress, plan, place = training.progress, training.plan, training.progress.place
    requested = time.perf_counter()
    batch, after = training.loader(place), training.order.after(place)
    received = time.perf_counter()
    if place in progress.excluded or batch is None:  # None: accepted changes have made the data shorter
        training.advance(place=after)
        return
    step = progress.step + 1
    lr = learning_rate(plan, step, d_model=training.d_model, total_steps=training.total_steps)
    try:
        loss, grad_norm, counts, is_applied = update(training, batch, step, lr)
    except (RuntimeError, MemoryError) as error:
        if not is_memory_error(error):
            raise
        yield Split(progress.step, double_micro_batches(training, error))
        return
    if is_applied:
        losses = (*progress.losses, loss)[-RECENT:] if plan.spike else ()
        training.advance(place=after, step=step, bad=(), losses=losses)
        unit, count = next(iter(counts.items()))
        waited, took = received - requested, time.perf_counter() - received
        seconds = training.seconds
        share = _share(plan, step, training.total_steps, seconds)
        yield Step(step, place.epoch, loss, lr, grad_norm, count, unit, seconds, share, waited, took)
        return
    bad, skipped = (*progress.bad, place), progress.skipped + 1
    training.advance(place=after, step=step, bad=bad, skipped=skipped)
    examples = training.train.in_epoch(training.seed, place.epoch)
    rows = tuple(examples.row(i).where for i in batch.indices)
    yield Skipped(step, place, rows, loss, grad_norm, skipped)
    if len(bad) == BAD_UPDATES:
        yield from roll_back(training)


def update(
    training: Training, batch: RankBatch, step: int, lr: float
) -> tuple[float, float, dict[str, int], bool]:
    """One optimizer step on one global batch: unsmoothed loss, gradient norm, counts, and if it is applied.

    It is applied if loss and gradient are finite and the loss is no spike; otherwise weights and moments stay
    unchanged, to the bit.
    """
    ranks = training.ranks
    torch.manual_seed(_seed(training.seed, step, ranks.rank))
    counts = {name: int(total) for name, total in ranks.sum(batch.counts).items()}
    training.optimizer.zero_grad(set_to_none=True)
    mean_loss = 0.0
    for number, part in enumerate(batch.micro_batches, 1):
        is_filler = number > batch.n_real
        with ranks.gradient_sync(training.parallel, number == len(batch.micro_batches)):
            with autocast(training.device, bfloat16=training.bfloat16):
                loss = training.task.loss(training.parallel, part.to(training.device))
            objective = loss.objective(counts) * (0 if is_filler else ranks.world)
            objective.backward()  # type: ignore[no-untyped-call]
        mean_loss += (
            0.0
            if is_filler
            else sum(float(value) / max(1, counts[name]) for name, value in loss.shown.items())
        )
    mean_loss = ranks.sum({"loss": mean_loss})["loss"]
    limit = training.plan.clip_norm or float("inf")
    norm = float(full_tensor(nn.utils.clip_grad_norm_(training.model.parameters(), limit)))
    is_applied = math.isfinite(mean_loss) and math.isfinite(norm) and not training.is_spike(mean_loss)
    if is_applied:
        for group in training.optimizer.param_groups:
            group["lr"] = lr * group.get("rate", 1.0)
        training.optimizer.step()
        if training.ema is not None:
            training.ema.update(step)
    return mean_loss, norm, counts, is_applied


def _seed(seed: int, step: int, rank: int) -> int:
    """Seed of one step's random numbers; every rank has its own dropout."""
    entropy = (seed, step, rank) if rank else (seed, step)
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])


def _score(training: Training) -> tuple[dict[str, float], list[dict[str, str]]]:
    """Validate on rank 0, or on all ranks of a sharded model; a signal that interrupts it stops all ranks."""
    result: dict[str, Any] = {}
    if training.ranks.first or training.is_sharded:
        try:
            with nullcontext() if training.ema is None else training.ema.in_place():
                result = {"metrics": training.score()[0], "samples": training.samples()}
        except Interrupted as stopped:
            result = {"signal": stopped.signum}
    result = training.ranks.broadcast(result)
    if "signal" in result:
        raise Interrupted(result["signal"])
    return result["metrics"], result["samples"]


def _validate(training: Training) -> Iterator[Event]:
    """Validate, update the best score (the lower loss breaks ties) and save."""
    before, began = training.progress, time.perf_counter()
    metrics, samples = _score(training)
    metric = training.task.metric
    score, loss = metrics[metric.name], metrics["loss"]
    better = before.best_score is None or metric.is_better(score, before.best_score)
    breaks_tie = score == before.best_score and before.best_loss is not None and loss < before.best_loss
    best = better or breaks_tie
    new_best = {"best_score": score, "best_loss": loss, "best_step": before.step} if best else {}
    recent = (*before.recent, before.step)[-training.plan.average :]
    training.advance(recent=recent, stale=0 if better else before.stale + 1, **new_best)
    took = time.perf_counter() - began
    yield Evaluated(before.step, metrics, best, training.seconds, took, tuple(samples))
    yield from save(training)
    if best and training.saved_at != before.step:  # weights that could not be saved cannot be the best
        old_best = {name: getattr(before, name) for name in ("best_score", "best_loss", "best_step")}
        training.advance(**old_best)


def _validation_due(plan: TrainConfig, progress: Progress) -> bool:
    is_due = progress.step % plan.eval_every == 0 if plan.eval_every else progress.place[1:] == (0, 0)
    return progress.step > 0 and is_due


def _save_due(training: Training) -> bool:
    plan, step = training.plan, training.progress.step
    by_step = plan.save_every is not None and step % plan.save_every == 0
    by_time = training.progress.seconds - training.saved_seconds >= 60 * plan.save_minutes
    return step != training.saved_at and (by_step or by_time)


def _limit(plan: TrainConfig, progress: Progress) -> str | None:
    if plan.max_steps is not None and progress.step >= plan.max_steps:
        return f"max_steps = {plan.max_steps}"
    if plan.max_epochs is not None and progress.place.epoch >= plan.max_epochs:
        return f"max_epochs = {plan.max_epochs}"
    if plan.max_minutes is not None and progress.seconds >= 60 * plan.max_minutes:
        return f"max_minutes = {plan.max_minutes:g}"
    return None


def _out_of_patience(plan: TrainConfig, progress: Progress) -> str | None:
    if plan.patience is not None and progress.stale >= plan.patience:
        return f"no better score in {plan.patience} validations"
    return None


def _share(plan: TrainConfig, step: int, total_steps: int | None, seconds: float) -> float:
    by_steps = step / total_steps if total_steps else 0.0
    by_time = seconds / (60 * plan.max_minutes) if plan.max_minutes else 0.0
    return min(1.0, max(by_steps, by_time))
