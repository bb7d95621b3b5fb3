"""Checkpoint policy: saving along the way, rolling back after bad updates, and choosing the final weights."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor

from regard import durable
from regard.errors import CheckpointError, RunError
from regard.training import checkpoint
from regard.training.events import Event, Finished, RolledBack, Saved, SaveFailed
from regard.training.state import Training

Tensors = dict[str, dict[str, Tensor]]

FAILED_SAVES = 3
"""Failed saves in a row after which training stops."""
BAD_UPDATES = 5
"""Skipped updates in a row after which training rolls back to a checkpoint."""
ROLLBACKS = 3
"""Roll-backs after which training stops."""
MIN_LEAD = 0.01
"""Share of its score by which the best checkpoint must lead to be chosen over the average."""


def save(training: Training) -> Iterator[Event]:
    """Write a checkpoint and delete old ones; RunError after several failures in a row."""
    training.synchronize()
    training.advance(threads=torch.get_num_threads())
    training.saved_seconds = training.progress.seconds
    step, began = training.progress.step, time.perf_counter()
    if why := _save_on_all_ranks(training) if training.ranks.shard else _save_on_rank_0(training):
        training.failed_saves += 1
        yield SaveFailed(step, why, training.failed_saves)
        if training.failed_saves == FAILED_SAVES:
            raise RunError(_disk_full(training, why))
        return
    training.failed_saves, training.saved_at = 0, step
    yield Saved(step, checkpoint.folder_of(training.checkpoints, step), time.perf_counter() - began)


def _save_on_rank_0(training: Training) -> str:
    """Save on rank 0; returns the reason of a failure, or an empty string."""
    why = _save(training, checkpoint.write_whole) if training.ranks.first else None
    return str(training.ranks.broadcast(why))


def _save_on_all_ranks(training: Training) -> str:
    """Save with every rank writing its part; rank 0 makes the folder, and seals it in the end."""
    ranks, tensors = training.ranks, _tensors(training)
    if not ranks.first:
        if folder := ranks.broadcast():
            with suppress(OSError):
                checkpoint.write_sharded(Path(folder), tensors)
        return str(ranks.broadcast())
    has_broadcast = False

    def write(folder: Path, tensors: Tensors) -> None:
        nonlocal has_broadcast
        has_broadcast = True
        ranks.broadcast(str(folder))
        checkpoint.write_sharded(folder, tensors)

    why = _save(training, write)
    if not has_broadcast:
        ranks.broadcast("")
    return str(ranks.broadcast(why))


def _save(training: Training, write: Callable[[Path, Tensors], None]) -> str:
    progress, root = training.progress, training.checkpoints
    try:
        checkpoint.save(root, progress, lambda folder: write(folder, _tensors(training)))
    except OSError as error:
        return error.strerror or str(error)
    except SafetensorError as error:
        return str(error)
    two_newest = checkpoint.saved_steps(root)[-2:]
    checkpoint.prune(root, {*two_newest, *progress.recent, progress.best_step})
    return ""


def _tensors(training: Training) -> Tensors:
    averaged = None if training.ema is None else training.ema.weights
    return checkpoint.tensors_of(training.model, training.optimizer, averaged)


def _disk_full(training: Training, why: str) -> str:
    root = training.checkpoints
    needed, free = checkpoint.n_bytes(training.model, training.optimizer), 0
    with suppress(OSError):
        free = shutil.disk_usage(root).free
    kept = (
        f"the last checkpoint is of step {training.saved_at}"
        if training.saved_at is not None
        else "there is no checkpoint yet"
    )
    return (
        f"{root}: {FAILED_SAVES} checkpoints in a row could not be written ({why}); one needs {needed:,} "
        f"bytes and {free:,} are free; {kept}; make room and run the same command again"
    )


def choose_weights(training: Training, reason: str) -> Finished:
    """Fill the model with the average of the last checkpoints, unless the best one is clearly better.

    The best of many scores owes part of its lead to luck, which does not carry over to other data; the
    average was not selected by its score.
    """
    progress, root, metric = training.progress, training.checkpoints, training.task.metric
    validated = {*progress.recent} if progress.best_score is None else {*progress.recent, progress.best_step}
    intact = [
        step
        for step in sorted(validated & {*checkpoint.saved_steps(root)})
        if durable.damage(checkpoint.folder_of(root, step)) is None
    ]
    intact = training.ranks.broadcast(intact) if training.is_sharded else intact
    if not intact:
        raise CheckpointError(
            f"{root}: no validated checkpoint is intact; make room on the disk and run the same command "
            "again to resume from the newest intact one, or start over with --fresh"
        )
    if progress.best_step in intact:
        candidates = {f"best checkpoint (step {progress.best_step})": [progress.best_step]}
    else:
        candidates = {f"checkpoint of step {intact[-1]}, as the best one is damaged": intact[-1:]}
    recent = [step for step in intact if step in progress.recent]
    if len(recent) > 1:
        candidates[f"average of the last {len(recent)} checkpoints"] = recent
    scores = {}
    for name, steps in candidates.items():
        checkpoint.fill(training.model, _average(training, steps), str(root))
        scores[name] = training.score(thorough=True)
    best, last = next(iter(scores)), next(reversed(scores))
    of_last, of_best = (scores[name][0][metric.name] for name in (last, best))
    kept = last if metric.is_nearly(of_last, of_best, MIN_LEAD) else best
    if kept != last:
        checkpoint.fill(training.model, _average(training, candidates[kept]), str(root))
    metrics, tally = scores[kept]
    training.tally = tally
    return Finished(
        progress.step, reason, training.seconds, progress.best_step, kept, metrics, tally.signatures()
    )


def _average(training: Training, steps: list[int]) -> dict[str, Tensor]:
    """Average the weights that were validated at these steps: the EMA, if there is one."""
    name = "model" if training.ema is None else "ema"
    return checkpoint.average(training.model, training.checkpoints, steps, name)


def roll_back(training: Training) -> Iterator[Event]:
    """Return to the newest checkpoint and exclude the bad batches; RunError if it has happened too often."""
    before = training.progress
    newest, renamed = training.newest_checkpoint()
    yield from renamed
    if before.rollbacks == ROLLBACKS or newest is None:
        batches = ", ".join(
            f"{place.window}.{place.batch} of epoch {place.epoch + 1}" for place in before.bad
        )
        raise RunError(
            f"{training.checkpoints.parent}: loss or gradient is not finite in {BAD_UPDATES} updates in a "
            f"row, the last at step {before.step} (batches {batches}), after {before.rollbacks} roll-backs "
            f"and {before.skipped} skipped updates; try a smaller train.lr or a longer train.warmup, and "
            "look at the rows that metrics.jsonl lists"
        )
    training.progress = replace(
        training.restore(newest),
        seconds=before.seconds,
        skipped=before.skipped,
        bad=(),
        excluded=(*before.excluded, *before.bad),
        rollbacks=before.rollbacks + 1,
        parts=before.parts,
    )
    yield RolledBack(newest, before.step, before.bad)
