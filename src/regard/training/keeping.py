"""What is kept of a training: checkpoints on the way, the way back to one, and the weights at the end."""

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
"""Updates without finite numbers in a row after which training goes back to a checkpoint."""
ROLLBACKS = 3
"""Times it goes back before it gives up."""
LUCK = 0.01
"""The share of its score by which the best checkpoint must lead to be better than the average."""


def save(training: Training) -> Iterator[Event]:
    """Write a checkpoint and forget old ones; keep on training when the disk refuses, for a while."""
    training.agree()
    training.advance(threads=torch.get_num_threads())
    training.saved_seconds = training.progress.seconds
    step, began = training.progress.step, time.perf_counter()
    if why := _written_together(training) if training.ranks.shard else _written_by_one(training):
        training.failed_saves += 1
        yield SaveFailed(step, why, training.failed_saves)
        if training.failed_saves == FAILED_SAVES:
            raise RunError(_no_room(training, why))
        return
    training.failed_saves, training.saved_at = 0, step
    yield Saved(step, checkpoint.folder_of(training.checkpoints, step), time.perf_counter() - began)


def _written_by_one(training: Training) -> str:
    """Why the checkpoint could not be written; nothing when it was."""
    return str(
        training.ranks.told(_written(training, checkpoint.write_whole) if training.ranks.first else None)
    )


def _written_together(training: Training) -> str:
    """The same when every rank writes its part; the first makes the folder, and seals it in the end."""
    ranks, tensors = training.ranks, _tensors(training)
    if not ranks.first:
        if place := ranks.told():
            with suppress(OSError):
                checkpoint.write_sharded(Path(place), tensors)
        return str(ranks.told())
    met = False

    def write(folder: Path, tensors: Tensors) -> None:
        nonlocal met
        met = True
        ranks.told(str(folder))
        checkpoint.write_sharded(folder, tensors)

    why = _written(training, write)
    if not met:
        ranks.told("")
    return str(ranks.told(why))


def _written(training: Training, write: Callable[[Path, Tensors], None]) -> str:
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


def _no_room(training: Training, why: str) -> str:
    root = training.checkpoints
    needed, free = checkpoint.n_bytes(training.model, training.optimizer), 0
    with suppress(OSError):
        free = shutil.disk_usage(root).free
    kept = (
        f"training can go on from step {training.saved_at}" if training.saved_at is not None else "none yet"
    )
    return (
        f"{root}: {FAILED_SAVES} checkpoints in a row could not be written ({why}); one needs {needed:,} "
        f"bytes and {free:,} are free; {kept}: make room and give the same command again"
    )


def choose(training: Training, reason: str) -> Finished:
    """Leave the model with the average of the last checkpoints, unless the best one is clearly better.

    The best of many scores owes part of its lead to luck, which it will not have on other data; an average
    was not picked, so it has none.
    """
    progress, root, metric = training.progress, training.checkpoints, training.task.metric
    validated = {*progress.recent} if progress.best_score is None else {*progress.recent, progress.best_step}
    whole = [
        step
        for step in sorted(validated & {*checkpoint.saved_steps(root)})
        if durable.damage(checkpoint.folder_of(root, step)) is None
    ]
    whole = training.ranks.told(whole) if training.together else whole
    if not whole:
        raise CheckpointError(
            f"{root}: no validated checkpoint is whole; see that the disk has room and give the same command "
            "again, which goes on from the newest that is, or start over with --fresh"
        )
    if progress.best_step in whole:
        candidates = {f"best checkpoint (step {progress.best_step})": [progress.best_step]}
    else:
        candidates = {f"checkpoint of step {whole[-1]}, as the best one is damaged": whole[-1:]}
    recent = [step for step in whole if step in progress.recent]
    if len(recent) > 1:
        candidates[f"average of the last {len(recent)} checkpoints"] = recent
    scores = {}
    for name, steps in candidates.items():
        checkpoint.fill(training.model, _mean(training, steps), str(root))
        scores[name] = training.score(thorough=True)
    best, last = next(iter(scores)), next(reversed(scores))
    of_last, of_best = (scores[name][0][metric.name] for name in (last, best))
    kept = last if metric.is_nearly(of_last, of_best, LUCK) else best
    if kept != last:
        checkpoint.fill(training.model, _mean(training, candidates[kept]), str(root))
    metrics, tally = scores[kept]
    return Finished(
        progress.step, reason, training.seconds, progress.best_step, kept, metrics, tally.signatures()
    )


def _mean(training: Training, steps: list[int]) -> dict[str, Tensor]:
    """Of what was validated at these steps: the moving average, if there is one."""
    name = "model" if training.ema is None else "ema"
    return checkpoint.average(training.model, training.checkpoints, steps, name)


def roll_back(training: Training) -> Iterator[Event]:
    """Back to the newest checkpoint, from where the bad batches are passed over; give up when it recurs."""
    before = training.progress
    newest, aside = training.newest()
    yield from aside
    if before.rollbacks == ROLLBACKS or newest is None:
        places = ", ".join(f"{place.window}.{place.batch} of epoch {place.epoch + 1}" for place in before.bad)
        raise RunError(
            f"{training.checkpoints.parent}: loss or gradient is not finite in {BAD_UPDATES} updates in a "
            f"row, the last at step {before.step} (batches {places}), after {before.rollbacks} roll-backs "
            f"and {before.skipped} updates left out; try a smaller train.lr or a longer train.warmup, and "
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
