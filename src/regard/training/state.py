"""A training: what is trained, on what, how, and where it stands."""

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
from regard.data.ahead import Ahead
from regard.data.batching import Order, Place, split
from regard.data.examples import Examples
from regard.errors import CheckpointError
from regard.tasks.task import Batch, Tally, Task, evaluating
from regard.training import checkpoint
from regard.training.checkpoint import Progress
from regard.training.config import TrainConfig
from regard.training.ema import Ema
from regard.training.evaluate import evaluate
from regard.training.events import SetAside
from regard.training.muon import Muon
from regard.training.precision import is_narrow
from regard.training.ranks import Ranks
from regard.training.stopping import Stop

RECENT = 64
"""Losses that a spike is told by."""
COMPILER = "inductor"
"""The backend of torch.compile."""
SAMPLES = 3
"""Validation examples whose answers are kept over time."""


@dataclass(frozen=True)
class Load:
    """One rank's share of a global batch, collated in the parts that go through the model one by one."""

    indices: Sequence[int]
    """Of the whole batch."""
    parts: Sequence[Batch]
    """Equally many on every rank."""
    n_own: int
    """The first so many; the rest are another's row, with which a rank only goes through the motions."""

    @property
    def counts(self) -> dict[str, int]:
        """What this rank's share counts."""
        return {
            name: sum(part.counts[name] for part in self.parts[: self.n_own]) for name in self.parts[0].counts
        }


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
    """Of parameters that learn at another rate than the rest: a factor."""

    def __post_init__(self) -> None:
        if self.plan.compile:
            self.model.compile(backend=COMPILER, dynamic=True)
        self.parallel = self.ranks.parallel(self.model)
        """The model as it is trained: what goes through it is summed over the ranks on its way back."""
        self.narrow = is_narrow(self.plan, self.device, self.d_model)
        self.optimizer = _optimizer(self.model, self.plan, self.rates, narrow=self.narrow)
        self.ema = Ema(self.model, self.plan.ema) if self.plan.ema else None
        self.signal = 0
        """The signal that was heard, agreed by all ranks."""
        self.saved_at: int | None = None
        self.saved_seconds = 0.0
        self.failed_saves = 0
        self.order = Order(self.train.sizes, self.plan.tokens, self.seed)
        self.loader = Ahead(self._load_at, self.order.after, self.plan.workers)
        self.started = time.perf_counter()

    @cached_property
    def learns_by_steps(self) -> bool:
        """Not a model whose weights were counted."""
        return any(parameter.requires_grad for parameter in self.model.parameters())

    @cached_property
    def total_steps(self) -> int | None:
        """Known when steps or epochs are limited."""
        by_epochs = self.plan.max_epochs and self.plan.max_epochs * self.order.n_batches
        return min((limit for limit in (self.plan.max_steps, by_epochs) if limit is not None), default=None)

    @property
    def n_parts(self) -> int:
        """Into which a batch is split."""
        return max(self.plan.accumulate, self.progress.parts)

    def load(self, indices: Sequence[int], n_parts: int | None = None, epoch: int = 0) -> Load:
        examples = self.train.in_epoch(self.seed, epoch)
        largest_share = -(-len(indices) // self.ranks.world)
        n_parts = min(n_parts or self.n_parts, largest_share)
        own = split(self.ranks.share(indices), n_parts)
        parts = own + [list(indices[:1])] * (n_parts - len(own))
        return Load(indices, [self.task.collate([examples[i] for i in part]) for part in parts], len(own))

    def _load_at(self, place: Place) -> Load | None:
        indices = self.order.batch(place)
        return None if indices is None else self.load(indices, epoch=place.epoch)

    @property
    def together(self) -> bool:
        """Whether all ranks must do the same, in scoring too: each holds a part of the model only."""
        return self.ranks.shard and self.ranks.world > 1

    @property
    def seconds(self) -> float:
        """Since the beginning, adding up over resumes."""
        return self.progress.seconds + time.perf_counter() - self.started

    def advance(self, **changes: Any) -> None:
        """Where training stands now."""
        self.progress = replace(self.progress, **changes)

    def is_spike(self, loss: float) -> bool:
        """Whether it is far above what the last ones were; not before there are enough of them."""
        factor, losses = self.plan.spike, self.progress.losses
        return factor is not None and len(losses) == RECENT and loss > factor * median(losses)

    def agree(self) -> None:
        """All ranks go by the slowest clock, and by the signal that any of them heard."""
        agreed = self.ranks.most({"signal": float(self.stop.heard or 0), "seconds": self.seconds})
        self.advance(seconds=agreed["seconds"])
        self.started, self.signal = time.perf_counter(), int(agreed["signal"])

    def newest(self) -> tuple[int | None, list[SetAside]]:
        """The newest whole checkpoint, as rank 0 finds it."""
        aside: list[SetAside] = []
        step: int | None = None
        if self.ranks.first:
            steps = checkpoint.saved_steps(self.checkpoints)
            step, aside = checkpoint.newest_whole(self.checkpoints, steps)
        return self.ranks.told(step), aside

    def restore(self, step: int) -> Progress:
        """Weights and moments of that checkpoint; where training stood then."""
        self.saved_at = step
        progress = checkpoint.restore(self.checkpoints, step, self.model, self.optimizer)
        if self.ema is not None:
            self.ema.weights = checkpoint.read_like(self.ema.weights, self.checkpoints, step, "ema")
        self.saved_seconds = progress.seconds
        return progress

    def resume(self) -> list[SetAside]:
        """Go back to the newest whole checkpoint, if any, and to its threads: bits depend on them."""
        if self.ranks.first:
            durable.mend(self.checkpoints)
        newest, aside = self.newest()
        if newest is not None:
            self.progress = self.restore(newest)
            torch.set_num_threads(self.plan.threads or self.progress.threads)
        elif aside:
            raise CheckpointError(
                f"{aside[0].path}: {aside[0].fault}, and no older checkpoint is whole; "
                f"the damaged are kept as {aside[0].moved_to}; start over with --fresh"
            )
        return aside

    def score(
        self, examples: Sequence[Any] | None = None, *, thorough: bool = False
    ) -> tuple[dict[str, float], Tally]:
        """Metrics, of the validation data if not told, by the quick search or as the recipe searches."""
        return evaluate(
            self.task,
            self.model,
            self.valid if examples is None else examples,
            self.device,
            thorough=thorough,
            batch_tokens=self.plan.tokens,
            tick=lambda done: None if self.together else self.stop.poll(),
        )

    def samples(self) -> list[dict[str, str]]:
        """What the model answers to the first few validation examples."""
        first_few = [self.valid[i] for i in range(min(SAMPLES, len(self.valid)))]
        shown = [example for example in first_few if self.task.usable_input(example)]
        if not shown:
            return []
        with evaluating(self.model):
            return self.task.samples(self.model, shown, self.device)


def _optimizer(
    model: nn.Module, plan: TrainConfig, rates: dict[str, float], *, narrow: bool
) -> torch.optim.Optimizer:
    settings: dict[str, Any] = {
        "lr": plan.lr,
        "betas": plan.betas,
        "eps": plan.eps,
        "weight_decay": plan.weight_decay,
        "fused": True,
    }
    if plan.optimizer == "muon":
        return Muon(model, narrow=narrow, **settings)
    kind = torch.optim.AdamW if plan.optimizer == "adamw" else torch.optim.Adam
    return kind(_groups(model, rates), **settings)


def _groups(model: nn.Module, rates: dict[str, float]) -> list[dict[str, Any]]:
    """Parameters by their rate."""
    found: dict[float, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        found.setdefault(rates.get(name, 1.0), []).append(parameter)
    return [{"params": parameters, "rate": rate} for rate, parameters in found.items()]
