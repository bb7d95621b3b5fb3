"""Batches that fit into memory: into how many parts one has to be split, found by trying.

Parts only bound memory: the gradient is that of the whole batch, whatever their number.
"""

import gc
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from regard.errors import RunError
from regard.training.machine import Machine
from regard.training.precision import products
from regard.training.state import Training

SHARE = 0.8
"""Of the memory that is left, what a batch may take."""
TRIED = 16
"""The first guess is made with this fraction of the largest batch."""


def is_memory_error(error: BaseException) -> bool:
    """Devices say it by class, the CPU's allocator in words."""
    words = ("can't allocate memory", "not enough memory", "out of memory")
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in words)
    )


def find_parts(training: Training) -> int:
    """The fewest parts, a power of two, in which the largest batch goes through; the weights stay."""
    batches = training.order.window(0, 0)
    largest = max(batches, key=lambda batch: len(batch) * int(training.train.sizes[batch].max()))
    parts = _guess(training, largest) if training.device.type == "cpu" or training.together else 1
    # where all take part in every pass, one that failed alone would leave the others waiting
    while not (training.together or _goes_through(training, largest, parts)):
        if parts >= len(largest):
            raise RunError(
                f"{training.checkpoints.parent}: not even one row of the largest batch fits into memory; "
                "take a smaller model or a smaller task.max_length"
            )
        parts *= 2
    return int(training.ranks.most({"parts": parts})["parts"])


def split_further(training: Training, error: RuntimeError | MemoryError) -> int:
    """Twice as many parts from here on, after a batch did not fit."""
    training.optimizer.zero_grad(set_to_none=True)
    _free(training.device)
    rows = len(training.order.batch(training.progress.place) or ())
    if training.plan.batch_tokens != "auto" or training.ranks.world > 1 or training.n_parts >= rows:
        raise RunError(
            f"{training.checkpoints.parent}: out of memory at step {training.progress.step + 1} with "
            f"{training.n_parts} part{'s' * (training.n_parts > 1)} a batch ({str(error).splitlines()[0]}); "
            f'set train.batch_tokens = "auto", or train.accumulate = {2 * training.n_parts}, which gives the '
            "same result in less memory"
        ) from error
    training.advance(parts=2 * training.n_parts)
    return training.n_parts


def _guess(training: Training, largest: list[int]) -> int:
    """By what a small part of the batch takes: a CPU gives more than there is, and the process is killed."""
    rows = max(1, len(largest) // TRIED)
    try:
        each = _kept_for_backward(training, largest[-rows:]) / rows  # the longest of them
    except (RuntimeError, MemoryError) as error:
        if not is_memory_error(error):
            raise
        return len(largest)
    room, parts = SHARE * _room() - _gradients_and_moments(training), 1
    while parts < len(largest) and each * -(-len(largest) // parts) > room:
        parts *= 2
    return parts


def _goes_through(training: Training, batch: list[int], parts: int) -> bool:
    try:
        for part in training.load(batch, parts).parts:
            counts = part.counts
            with products(training.device, narrow=training.narrow):
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


def _kept_for_backward(training: Training, rows: list[int]) -> int:
    """Bytes that a forward pass leaves behind for the backward pass; weights are not counted."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in training.model.parameters()}
    kept: dict[int, int] = {}
    held: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
            held.append(tensor)  # or its place in memory would be given away and counted once
        return tensor

    part = training.task.collate([training.train[i] for i in rows]).to(training.device)
    keeping = torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor)
    with keeping, products(training.device, narrow=training.narrow):
        training.task.loss(training.model, part)
    return sum(kept.values())


def _gradients_and_moments(training: Training) -> int:
    return 3 * sum(p.numel() * p.element_size() for p in training.model.parameters())


def _room() -> int:
    """Bytes that this process may still take."""
    room = Machine.here().memory
    with suppress(OSError, ValueError, IndexError):
        room -= int(Path("/proc/self/statm").read_text().split()[1]) * 4096
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                room = min(room, int(line.split()[1]) * 1024)
    return room


def _free(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
