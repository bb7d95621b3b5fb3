"""The training loop: a generator of events. It owns checkpoints; everything else is the caller's for-loop.

What a step does is a pure function of (seed, step) and the weights: the global batch is defined by
`data.batching`, dropout's generator is seeded per step. Loss sums are divided by the counts of the whole
global batch, so splitting it (accumulation) changes nothing.
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
from regard.training.config import TrainConfig
from regard.training.events import Evaluated, Event, Scoring, Skipped, Split, Step
from regard.training.fitting import find_parts, is_memory_error, split_further
from regard.training.keeping import BAD_UPDATES, choose, roll_back, save
from regard.training.precision import products
from regard.training.ranks import whole
from regard.training.schedule import learning_rate
from regard.training.state import RECENT, Load, Training
from regard.training.stopping import Interrupted

COUNTED = "all was counted"
"""Why a training without steps ends."""


def run(training: Training) -> Iterator[Event]:
    """Train until a limit is reached; the model ends with the weights that validated best."""
    plan = training.plan
    training.started = time.perf_counter()
    training.model.train()
    with training.stop.deferred():
        try:
            if training.saved_at is None:
                if plan.batch_tokens == "auto" and training.learns_by_steps:
                    training.advance(parts=find_parts(training))
                    yield Split(0, training.n_parts)
                yield from save(training)
            while True:
                reason = _limit(plan, training.progress) if training.learns_by_steps else COUNTED
                if not training.progress.validated and (reason or _due(plan, training.progress)):
                    yield from _validate(training)
                reason = reason or _stale(plan, training.progress)
                if reason:
                    break
                if _save_due(training):
                    yield from save(training)
                training.agree()
                if training.signal:
                    raise Interrupted(training.signal)
                yield from _step(training)
        except Interrupted:
            between_steps = training.stop.thrown is None
            if between_steps and training.saved_at != training.progress.step:
                yield from save(training)
            raise
    if training.ranks.first or training.together:
        yield Scoring(training.progress.step, "valid")
        yield choose(training, reason)


def _step(training: Training) -> Iterator[Event]:
    progress, plan, place = training.progress, training.plan, training.progress.place
    asked = time.perf_counter()
    load, after = training.loader(place), training.order.after(place)
    got = time.perf_counter()
    if place in progress.excluded or load is None:  # none there: other data since, by accepted changes
        training.advance(place=after)
        return
    step = progress.step + 1
    lr = learning_rate(plan, step, d_model=training.d_model, total_steps=training.total_steps)
    try:
        loss, grad_norm, counts, taken = update(training, load, step, lr)
    except (RuntimeError, MemoryError) as error:
        if not is_memory_error(error):
            raise
        yield Split(progress.step, split_further(training, error))
        return
    if taken:
        losses = (*progress.losses, loss)[-RECENT:] if plan.spike else ()
        training.advance(place=after, step=step, bad=(), losses=losses)
        unit, count = next(iter(counts.items()))
        waited, took = got - asked, time.perf_counter() - got
        seconds = training.seconds
        share = _share(plan, step, training.total_steps, seconds)
        yield Step(step, place.epoch, loss, lr, grad_norm, count, unit, seconds, share, waited, took)
        return
    bad, skipped = (*progress.bad, place), progress.skipped + 1
    training.advance(place=after, step=step, bad=bad, skipped=skipped)
    examples = training.train.in_epoch(training.seed, place.epoch)
    rows = tuple(examples.row(i).where for i in load.indices)
    yield Skipped(step, place, rows, loss, grad_norm, skipped)
    if len(bad) == BAD_UPDATES:
        yield from roll_back(training)


def update(training: Training, load: Load, step: int, lr: float) -> tuple[float, float, dict[str, int], bool]:
    """One step on one global batch: plain loss, gradient norm, what was counted, and whether it was taken.

    It is taken if loss and gradient are finite and the loss is no spike; else weights and moments stay as
    they were, to the bit.
    """
    ranks = training.ranks
    torch.manual_seed(_seed(training.seed, step, ranks.rank))
    counts = {name: int(total) for name, total in ranks.sums(load.counts).items()}
    training.optimizer.zero_grad(set_to_none=True)
    shown = 0.0
    for number, part in enumerate(load.parts, 1):
        own = number <= load.n_own
        with ranks.summing(training.parallel, number == len(load.parts)):
            with products(training.device, narrow=training.narrow):
                loss = training.task.loss(training.parallel, part.to(training.device))
            objective = loss.objective(counts) * (ranks.world if own else 0)
            objective.backward()  # type: ignore[no-untyped-call]
        shown += (
            sum(float(value) / max(1, counts[name]) for name, value in loss.shown.items()) if own else 0.0
        )
    shown = ranks.sums({"loss": shown})["loss"]
    limit = training.plan.clip_norm or float("inf")
    norm = float(whole(nn.utils.clip_grad_norm_(training.model.parameters(), limit)))
    taken = math.isfinite(shown) and math.isfinite(norm) and not training.is_spike(shown)
    if taken:
        for group in training.optimizer.param_groups:
            group["lr"] = lr * group.get("rate", 1.0)
        training.optimizer.step()
        if training.ema is not None:
            training.ema.update(step)
    return shown, norm, counts, taken


def _seed(seed: int, step: int, rank: int) -> int:
    """Of the random numbers of one step; every rank drops other units."""
    entropy = (seed, step, rank) if rank else (seed, step)
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])


def _score(training: Training) -> tuple[dict[str, float], list[dict[str, str]]]:
    """Rank 0 scores, the others wait or help; a signal that cuts it short stops them all."""
    told: dict[str, Any] = {}
    if training.ranks.first or training.together:
        try:
            with nullcontext() if training.ema is None else training.ema.in_place():
                told = {"metrics": training.score()[0], "samples": training.samples()}
        except Interrupted as stopped:
            told = {"signal": stopped.signum}
    told = training.ranks.told(told)
    if "signal" in told:
        raise Interrupted(told["signal"])
    return told["metrics"], told["samples"]


def _validate(training: Training) -> Iterator[Event]:
    """Score, note whether it is the best so far (of equals, that of the lowest loss), save."""
    before, began = training.progress, time.perf_counter()
    metrics, samples = _score(training)
    metric = training.task.metric
    score, loss = metrics[metric.name], metrics["loss"]
    better = before.best_score is None or metric.is_better(score, before.best_score)
    level = score == before.best_score and before.best_loss is not None and loss < before.best_loss
    best = better or level
    noted = {"best_score": score, "best_loss": loss, "best_step": before.step} if best else {}
    recent = (*before.recent, before.step)[-training.plan.average :]
    training.advance(recent=recent, stale=0 if better else before.stale + 1, **noted)
    took = time.perf_counter() - began
    yield Evaluated(before.step, metrics, best, training.seconds, took, tuple(samples))
    yield from save(training)
    if best and training.saved_at != before.step:  # weights that could not be kept cannot be the best
        kept = {name: getattr(before, name) for name in ("best_score", "best_loss", "best_step")}
        training.advance(**kept)


def _due(plan: TrainConfig, progress: Progress) -> bool:
    at_an_end = progress.step % plan.eval_every == 0 if plan.eval_every else progress.place[1:] == (0, 0)
    return progress.step > 0 and at_an_end


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


def _stale(plan: TrainConfig, progress: Progress) -> str | None:
    if plan.patience is not None and progress.stale >= plan.patience:
        return f"no better score in {plan.patience} validations"
    return None


def _share(plan: TrainConfig, step: int, total_steps: int | None, seconds: float) -> float:
    by_steps = step / total_steps if total_steps else 0.0
    by_time = seconds / (60 * plan.max_minutes) if plan.max_minutes else 0.0
    return min(1.0, max(by_steps, by_time))
