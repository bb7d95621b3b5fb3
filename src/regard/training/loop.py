"""The training loop: a generator of events. It owns checkpoints; everything else is the caller's for-loop.

What a step does is a pure function of (seed, step) and the weights: the global batch is defined by
`data.batching`, dropout's generator is seeded per step. Loss sums are divided by the counts of the whole
global batch, so splitting it (accumulation) changes nothing.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.data.batching import epoch_batches, split
from regard.tasks.task import Task
from regard.training import checkpoint
from regard.training.checkpoint import Progress
from regard.training.config import TrainConfig
from regard.training.evaluate import evaluate
from regard.training.events import Evaluated, Event, Finished, Saved, Step
from regard.training.schedule import learning_rate


@dataclass
class Training:
    """What is trained, on what, how; and where it stands."""

    task: Task[Any, Any, Any, Any]
    model: nn.Module
    train: Sequence[Any]
    valid: Sequence[Any]
    plan: TrainConfig
    checkpoints: Path
    seed: int
    device: torch.device
    d_model: int
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self.sizes = [self.task.size(example) for example in self.train]
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[self.plan.optimizer]
        self.optimizer: torch.optim.Optimizer = kind(
            self.model.parameters(),
            lr=self.plan.lr,
            betas=self.plan.betas,
            eps=self.plan.eps,
            weight_decay=self.plan.weight_decay,
            fused=True,
        )

    @property
    def total_steps(self) -> int | None:
        """Known when steps or epochs are limited; epochs differ by a batch or so, the first is counted."""
        per_epoch = len(epoch_batches(self.sizes, self.plan.batch_tokens, self.seed, 0))
        limits = [self.plan.max_steps, self.plan.max_epochs and self.plan.max_epochs * per_epoch]
        return min((limit for limit in limits if limit is not None), default=None)

    def resume(self) -> None:
        """Go back to the newest checkpoint and to as many threads as it had: bits depend on them."""
        newest = checkpoint.saved_steps(self.checkpoints)[-1]
        self.progress = checkpoint.restore(self.checkpoints, newest, self.model, self.optimizer)
        torch.set_num_threads(self.plan.threads or self.progress.threads or torch.get_num_threads())


def run(training: Training) -> Iterator[Event]:
    """Train until a limit is reached; the model ends with the weights that validated best."""
    plan, model = training.plan, training.model
    total_steps = training.total_steps
    before, started = training.progress.seconds, time.perf_counter()

    def elapsed() -> float:
        return before + time.perf_counter() - started

    model.train()
    reason = _limit(plan, training.progress) or _stale(plan, training.progress)  # resumed at its very end?
    while reason is None:
        progress = training.progress
        batches = epoch_batches(training.sizes, plan.batch_tokens, training.seed, progress.epoch)
        for number in range(progress.batch, len(batches)):
            step = training.progress.step + 1
            lr = learning_rate(plan, step, d_model=training.d_model, total_steps=total_steps)
            loss, grad_norm, counts = update(training, batches[number], step, lr)
            done = number + 1 == len(batches)
            training.progress = replace(
                training.progress,
                step=step,
                epoch=progress.epoch + done,
                batch=0 if done else number + 1,
                seconds=elapsed(),
            )
            share = _share(plan, training.progress, total_steps)
            unit, count = next(iter(counts.items()))
            yield Step(step, progress.epoch, loss, lr, grad_norm, count, unit, elapsed(), share)
            reason = _limit(plan, training.progress)
            if reason or (step % plan.eval_every == 0 if plan.eval_every else done):
                yield from _validate(training, elapsed)
                reason = reason or _stale(plan, training.progress)
            if reason:
                break
    yield _choose(training, reason, elapsed())


def update(
    training: Training, indices: Sequence[int], step: int, lr: float
) -> tuple[float, float, dict[str, int]]:
    """One step on one global batch: plain loss, gradient norm, and what was counted."""
    torch.manual_seed(int(np.random.SeedSequence((training.seed, step)).generate_state(1, np.uint64)[0]))
    batches = [
        training.task.collate([training.train[i] for i in part]).to(training.device)
        for part in split(indices, training.plan.accumulate)
    ]
    counts: dict[str, int] = {}
    for batch in batches:
        for name, count in batch.counts.items():
            counts[name] = counts.get(name, 0) + count
    training.optimizer.zero_grad(set_to_none=True)
    shown = 0.0
    for batch in batches:
        loss = training.task.loss(training.model, batch)
        loss.objective(counts).backward()  # type: ignore[no-untyped-call]
        shown += sum(float(value) / counts[name] for name, value in loss.shown.items())
    limit = training.plan.clip_norm or float("inf")
    norm = nn.utils.clip_grad_norm_(training.model.parameters(), limit)
    for group in training.optimizer.param_groups:
        group["lr"] = lr
    training.optimizer.step()
    return shown, float(norm), counts


def _validate(training: Training, elapsed: Any) -> Iterator[Event]:
    """Score, note whether it is the best so far, save, forget old checkpoints."""
    progress, began = training.progress, elapsed()
    metrics, _ = evaluate(
        training.task,
        training.model,
        training.valid,
        training.device,
        thorough=False,
        batch_tokens=training.plan.batch_tokens,
    )
    score = metrics[training.task.metric]
    best = progress.best_score is None or score > progress.best_score
    if best:
        progress = replace(progress, best_score=score, best_step=progress.step, stale=0)
    else:
        progress = replace(progress, stale=progress.stale + 1)
    training.progress = replace(progress, seconds=elapsed(), threads=torch.get_num_threads())
    yield Evaluated(progress.step, metrics, best, elapsed(), elapsed() - began)
    path = checkpoint.save(training.checkpoints, training.model, training.optimizer, training.progress)
    recent = checkpoint.saved_steps(training.checkpoints)[-training.plan.average :]
    checkpoint.prune(training.checkpoints, [*recent, progress.best_step])
    yield Saved(progress.step, path)


def _choose(training: Training, reason: str, seconds: float) -> Finished:
    """Leave the model with the best checkpoint or the average of the last, whichever validates better."""
    progress, plan, root = training.progress, training.plan, training.checkpoints
    assert progress.best_score is not None
    score = progress.best_score
    recent = checkpoint.saved_steps(root)[-plan.average :]
    if len(recent) > 1:
        checkpoint.fill(training.model, checkpoint.average(root, recent), str(root))
        averaged, _ = evaluate(
            training.task,
            training.model,
            training.valid,
            training.device,
            thorough=False,
            batch_tokens=plan.batch_tokens,
        )
        if averaged[training.task.metric] >= score:
            chosen = f"average of the last {len(recent)} checkpoints"
            return Finished(progress.step, reason, seconds, progress.best_step, chosen, averaged)
    best = checkpoint.folder_of(root, progress.best_step)
    checkpoint.load_weights(best / "model.safetensors", training.model)
    chosen = f"best checkpoint (step {progress.best_step})"
    return Finished(progress.step, reason, seconds, progress.best_step, chosen, {training.task.metric: score})


def _limit(plan: TrainConfig, progress: Progress) -> str | None:
    if plan.max_steps is not None and progress.step >= plan.max_steps:
        return f"max_steps = {plan.max_steps}"
    if plan.max_epochs is not None and progress.epoch >= plan.max_epochs:
        return f"max_epochs = {plan.max_epochs}"
    if plan.max_minutes is not None and progress.seconds >= 60 * plan.max_minutes:
        return f"max_minutes = {plan.max_minutes:g}"
    return None


def _stale(plan: TrainConfig, progress: Progress) -> str | None:
    if plan.patience is not None and progress.stale >= plan.patience:
        return f"no better score in {plan.patience} validations"
    return None


def _share(plan: TrainConfig, progress: Progress, total_steps: int | None) -> float:
    by_steps = progress.step / total_steps if total_steps else 0.0
    by_time = progress.seconds / (60 * plan.max_minutes) if plan.max_minutes else 0.0
    return min(1.0, max(by_steps, by_time))
