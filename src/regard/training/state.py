"""State of a training: model, data, settings, optimizer and progress."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from regard import durable
from regard.data.batching import Order, Place, split
from regard.data.cache import Examples
from regard.data.prefetch import Prefetch
from regard.errors import CheckpointError
from regard.tasks.task import Batch, Tally, Task, evaluating
from regard.training import checkpoint
from regard.training.checkpoint import Progress
from regard.training.config import TrainConfig
from regard.training.ema import Ema
from regard.training.evaluate import evaluate
from regard.training.events import SetAside
from regard.training.muon import Muon
from regard.training.precision import uses_bfloat16
from regard.training.ranks import Ranks
from regard.training.stopping import Stop

RECENT = 64
"""Recent losses that a new one is compared with to detect a spike."""
COMPILER = "inductor"
"""The backend of torch.compile."""
SAMPLES = 3
"""Validation examples whose answers are recorded over time."""


@dataclass(frozen=True)
class RankBatch:
    """One rank's share of a global batch, collated into micro-batches."""

    indices: Sequence[int]
    """Indices of the whole global batch."""
    micro_batches: Sequence[Batch]
    """Micro-batches, the same number on every rank."""
    n_real: int
    """Number of micro-batches that count; the rest are filler, so that all ranks make the same passes."""

    @property
    def counts(self) -> dict[str, int]:
        """Counts of this rank's share, by which losses are divided."""
        real, names = self.micro_batches[: self.n_real], self.micro_batches[0].counts
        return {name: sum(part.counts[name] for part in real) for name in names}


@dataclass
class Training:
    task: Task
    model: nn.Module
    train: Examples
    valid: Sequence[Any]
    plan: TrainConfig
    checkpoints: Path
    seed: int
    device: torch.device
    d_model: int
    ranks: Ranks = field(default_factory=Ranks)
    stop: Stop = field(default_factory=Stop)
    progress: Progress = field(default_factory=Progress)
    rates: dict[str, float] = field(default_factory=dict)
    """Learning-rate factors, by parameter name, where they differ from 1."""

    def __post_init__(self) -> None:
        if self.plan.compile:
            self.model.compile(backend=COMPILER, dynamic=True)
        self.parallel = self.ranks.parallel(self.model)
        """The model wrapped for data parallelism: gradients are summed over the ranks."""
        self.bfloat16 = uses_bfloat16(self.plan, self.device, self.d_model)
        self.optimizer = _optimizer(self.model, self.plan, self.rates, bfloat16=self.bfloat16)
        self.ema = Ema(self.model, self.plan.ema) if self.plan.ema else None
        self.signal = 0
        """Signal that any rank has received; 0 for none."""
        self.saved_at: int | None = None
        self.saved_seconds = 0.0
        self.failed_saves = 0
        self.order = Order(self.train.sizes, self.plan.tokens_per_batch, self.seed)
        self.loader = Prefetch(self._batch_at, self.order.after, self.plan.workers)
        self.started = time.perf_counter()
        self.tally: Tally | None = None
        """The tally of the weights that are kept, on what was scored last."""

    @cached_property
    def learns_by_steps(self) -> bool:
        """True if it has gradient steps, unlike a model whose weights are counts."""
        return any(parameter.requires_grad for parameter in self.model.parameters())

    @cached_property
    def total_steps(self) -> int | None:
        """Number of steps, if steps or epochs are limited."""
        by_epochs = self.plan.max_epochs and self.plan.max_epochs * self.order.n_batches
        return min((limit for limit in (self.plan.max_steps, by_epochs) if limit is not None), default=None)

    @property
    def n_micro_batches(self) -> int:
        """Micro-batches per batch."""
        return max(self.plan.accumulate, self.progress.parts)

    def rank_batch(self, indices: Sequence[int], n_parts: int | None = None, epoch: int = 0) -> RankBatch:
        """Collate this rank's share of a global batch."""
        examples = self.train.in_epoch(self.seed, epoch)
        largest_share = -(-len(indices) // self.ranks.world)
        n_parts = min(n_parts or self.n_micro_batches, largest_share)
        real = split(self.ranks.share(indices), n_parts)
        parts = real + [list(indices[:1])] * (n_parts - len(real))
        micro_batches = [self.task.collate([examples[i] for i in part]) for part in parts]
        return RankBatch(indices, micro_batches, len(real))

    def _batch_at(self, place: Place) -> RankBatch | None:
        indices = self.order.batch(place)
        return None if indices is None else self.rank_batch(indices, epoch=place.epoch)

    @property
    def is_sharded(self) -> bool:
        """True if each rank holds only a part of the model, so that all must take part in scoring too."""
        return self.ranks.shard and self.ranks.world > 1

    @property
    def seconds(self) -> float:
        """Seconds of training so far, earlier parts of a resumed run included."""
        return self.progress.seconds + time.perf_counter() - self.started

    def advance(self, **changes: Any) -> None:
        """Update the progress."""
        self.progress = replace(self.progress, **changes)

    def is_spike(self, loss: float) -> bool:
        """True if a loss is far above the recent ones; False until there are enough of them."""
        factor, losses = self.plan.spike, self.progress.losses
        return factor is not None and len(losses) == RECENT and loss > factor * median(losses)

    def synchronize(self) -> None:
        """Set every rank's clock to the slowest, and share a signal that any of them has received."""
        shared = self.ranks.max({"signal": float(self.stop.received or 0), "seconds": self.seconds})
        self.advance(seconds=shared["seconds"])
        self.started, self.signal = time.perf_counter(), int(shared["signal"])

    def newest_checkpoint(self) -> tuple[int | None, list[SetAside]]:
        """Step of the newest intact checkpoint, which rank 0 looks for; and those it has set aside."""
        renamed: list[SetAside] = []
        step: int | None = None
        if self.ranks.first:
            steps = checkpoint.saved_steps(self.checkpoints)
            step, renamed = checkpoint.newest_intact(self.checkpoints, steps)
        return self.ranks.broadcast(step), renamed

    def restore(self, step: int) -> Progress:
        """Load weights and moments of a checkpoint; returns its progress."""
        self.saved_at = step
        progress = checkpoint.restore(self.checkpoints, step, self.model, self.optimizer)
        if self.ema is not None:
            self.ema.weights = checkpoint.read_like(self.ema.weights, self.checkpoints, step, "ema")
        self.saved_seconds = progress.seconds
        return progress

    def resume(self) -> list[SetAside]:
        """Resume from the newest intact checkpoint, if any, with its number of threads: bits depend on it."""
        if self.ranks.first:
            durable.mend(self.checkpoints)
        newest, renamed = self.newest_checkpoint()
        if newest is not None:
            self.progress = self.restore(newest)
            torch.set_num_threads(self.plan.threads or self.progress.threads)
        elif renamed:
            raise CheckpointError(
                f"{renamed[0].path}: {renamed[0].fault}, and no older checkpoint is intact; "
                f"it was renamed to {renamed[0].moved_to}; start over with --fresh"
            )
        return renamed

    def score(
        self, examples: Sequence[Any] | None = None, *, thorough: bool = False
    ) -> tuple[dict[str, float], Tally]:
        """Metrics and tally, by default of the validation data; `thorough` uses the recipe's search."""
        return evaluate(
            self.task,
            self.model,
            self.valid if examples is None else examples,
            self.device,
            thorough=thorough,
            batch_tokens=self.plan.tokens_per_batch,
            tick=lambda done: None if self.is_sharded else self.stop.poll(),
        )

    def samples(self) -> list[dict[str, str]]:
        """Answers of the model to the first few validation examples."""
        first_few = [self.valid[i] for i in range(min(SAMPLES, len(self.valid)))]
        examples = [example for example in first_few if self.task.is_answerable(example)]
        if not examples:
            return []
        with evaluating(self.model):
            return self.task.samples(self.model, examples, self.device)


def _optimizer(
    model: nn.Module, plan: TrainConfig, rates: dict[str, float], *, bfloat16: bool
) -> torch.optim.Optimizer:
    settings: dict[str, Any] = {
        "lr": plan.lr,
        "betas": plan.betas,
        "eps": plan.eps,
        "weight_decay": plan.weight_decay,
        "fused": True,
    }
    if plan.optimizer == "muon":
        return Muon(model, bfloat16=bfloat16, **settings)
    adam = torch.optim.AdamW if plan.optimizer == "adamw" else torch.optim.Adam
    return adam(_parameter_groups(model, rates), **settings)


def _parameter_groups(model: nn.Module, rates: dict[str, float]) -> list[dict[str, Any]]:
    """Group parameters by their learning-rate factor."""
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        groups.setdefault(rates.get(name, 1.0), []).append(parameter)
    return [{"params": parameters, "rate": rate} for rate, parameters in groups.items()]
