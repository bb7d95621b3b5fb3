"""A training: what is trained, on what, how, and where it stands."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard import durable
from regard.data.batching import epoch_batches
from regard.errors import CheckpointError
from regard.tasks.task import Tally, Task
from regard.training import checkpoint
from regard.training.checkpoint import Progress
from regard.training.config import TrainConfig
from regard.training.evaluate import evaluate
from regard.training.events import SetAside
from regard.training.ranks import Ranks
from regard.training.stopping import Stop


@dataclass
class Training:
    task: Task[Any, Any, Any, Any]
    model: nn.Module
    train: Sequence[Any]
    valid: Sequence[Any]
    plan: TrainConfig
    checkpoints: Path
    seed: int
    device: torch.device
    d_model: int
    ranks: Ranks = field(default_factory=Ranks)
    stop: Stop = field(default_factory=Stop)
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
        self.parallel = self.ranks.parallel(self.model)
        """The model as it is trained: what goes through it is summed over the ranks on its way back."""
        self.signal = 0
        """The signal that was heard, agreed by all ranks."""
        self.saved_at: int | None = None
        self.saved_seconds = 0.0
        self.failed_saves = 0
        self.batches = lru_cache(maxsize=1)(
            lambda epoch: epoch_batches(self.sizes, self.plan.batch_tokens, self.seed, epoch)
        )
        self.started = time.perf_counter()

    @cached_property
    def total_steps(self) -> int | None:
        """Known when steps or epochs are limited; epochs differ by a batch or so, the first is counted."""
        by_epochs = self.plan.max_epochs and self.plan.max_epochs * len(self.batches(0))
        return min((limit for limit in (self.plan.max_steps, by_epochs) if limit is not None), default=None)

    @property
    def seconds(self) -> float:
        """Since the beginning, adding up over resumes."""
        return self.progress.seconds + time.perf_counter() - self.started

    def advance(self, **changes: Any) -> None:
        """Where training stands now."""
        self.progress = replace(self.progress, **changes)

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

    def score(self, *, thorough: bool = False) -> tuple[dict[str, float], Tally]:
        """Metrics on the validation data, by the quick search or as the recipe searches; on this rank."""
        return evaluate(
            self.task,
            self.model,
            self.valid,
            self.device,
            thorough=thorough,
            batch_tokens=self.plan.batch_tokens,
            tick=lambda done: self.stop.poll(),
        )
