"""Micro-batches: into how many parts a batch must be split to fit into memory, found by trying.

Their number only bounds memory: the gradient is that of the whole batch.
"""

import gc
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from regard.errors import RunError
from regard.training.machine import Machine
from regard.training.precision import autocast
from regard.training.state import Training

SHARE = 0.8
"""Share of the free memory that a batch may take."""
PROBE = 16
"""The first guess is measured on this fraction of the largest batch."""


def is_memory_error(error: BaseException) -> bool:
    """True if an error means out of memory; devices raise their own class, the CPU a RuntimeError."""
    words = ("can't allocate memory", "not enough memory", "out of memory")
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in words)
    )


def find_micro_batches(training: Training) -> int:
    """Smallest power of two of micro-batches with which the largest batch fits; the weights do not change."""
    batches = training.order.window(0, 0)
    largest = max(batches, key=lambda batch: len(batch) * int(training.train.sizes[batch].max()))
    n_parts = _guess(training, largest) if training.device.type == "cpu" or training.is_sharded else 1
    # if all ranks take part in every pass, one that failed alone would leave the others waiting
    while not (training.is_sharded or _fits(training, largest, n_parts)):
        if n_parts >= len(largest):
            raise RunError(
                f"{training.checkpoints.parent}: not even one row of the largest batch fits into memory; "
                "use a smaller model or a smaller task.max_length"
            )
        n_parts *= 2
    return int(training.ranks.max({"parts": n_parts})["parts"])


def double_micro_batches(training: Training, error: RuntimeError | MemoryError) -> int:
    """Double the number of micro-batches after a batch did not fit."""
    training.optimizer.zero_grad(set_to_none=True)
    _free(training.device)
    rows, n_parts = len(training.order.batch(training.progress.place) or ()), training.n_micro_batches
    if training.plan.batch_tokens != "auto" or training.ranks.world > 1 or n_parts >= rows:
        raise RunError(
            f"{training.checkpoints.parent}: out of memory at step {training.progress.step + 1} with "
            f"{n_parts} micro-batch{'es' * (n_parts > 1)} ({str(error).splitlines()[0]}); "
            f'set train.batch_tokens = "auto", or train.accumulate = {2 * n_parts}, which gives the '
            "same result in less memory"
        ) from error
    training.advance(parts=2 * n_parts)
    return training.n_micro_batches


def _guess(training: Training, largest: list[int]) -> int:
    """Guess from a small part of the batch: a CPU overcommits memory, and the process would be killed."""
    rows = max(1, len(largest) // PROBE)
    try:
        bytes_per_row = _saved_for_backward(training, largest[-rows:]) / rows  # the longest of them
    except (RuntimeError, MemoryError) as error:
        if not is_memory_error(error):
            raise
        return len(largest)
    budget, n_parts = SHARE * _free_memory() - _gradients_and_moments(training), 1
    while n_parts < len(largest) and bytes_per_row * -(-len(largest) // n_parts) > budget:
        n_parts *= 2
    return n_parts


def _fits(training: Training, batch: list[int], n_parts: int) -> bool:
    try:
        for part in training.rank_batch(batch, n_parts).micro_batches:
            counts = part.counts
            with autocast(training.device, bfloat16=training.bfloat16):
                loss = training.task.loss(training.model, part.to(training.device)).objective(counts)
            loss.backward()  # type: ignore[no-untyped-call]
    except (RuntimeError, MemoryError) as error:
        if not is_memory_error(error):
            raise
        return False
    finally:
        training.model.zero_grad(set_to_none=True)
        _free(training.device)
    return True


def _saved_for_backward(training: Training, rows: list[int]) -> int:
    """Bytes that a forward pass saves for the backward pass, without the weights."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in training.model.parameters()}
    sizes: dict[int, int] = {}
    alive: list[Tensor] = []

    def record(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)  # otherwise its address would be reused and counted once
        return tensor

    examples = training.train.in_epoch(training.seed, 0)
    part = training.task.collate([examples[i] for i in rows]).to(training.device)
    hooks = torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor)
    with hooks, autocast(training.device, bfloat16=training.bfloat16):
        training.task.loss(training.model, part)
    return sum(sizes.values())


def _gradients_and_moments(training: Training) -> int:
    return 3 * sum(p.numel() * p.element_size() for p in training.model.parameters())


def _free_memory() -> int:
    """Bytes that this process may still allocate."""
    free = Machine.here().memory
    with suppress(OSError, ValueError, IndexError):
        free -= int(Path("/proc/self/statm").read_text().split()[1]) * 4096
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = min(free, int(line.split()[1]) * 1024)
    return free


def _free(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
