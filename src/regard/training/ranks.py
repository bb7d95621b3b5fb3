"""Distributed training: this process among those that `torchrun` started, or alone.

Every rank takes its share of each global batch; sums and decisions are shared, so that all stay in step.
Rank 0 broadcasts JSON: nothing is pickled, not even between processes.
"""

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from regard.errors import RunError

TIMEOUT = timedelta(hours=2)
"""Longest wait of the other ranks while rank 0 validates, scores or saves."""

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    rank: int = 0
    world: int = 1
    device: torch.device | None = None
    shard: bool = False
    """True if each rank holds only a part of the model, so that all must take part in every pass."""

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, rows: Sequence[T]) -> Sequence[T]:
        """This rank's rows of a batch: nearly equal shares, in order."""
        return rows[len(rows) * self.rank // self.world : len(rows) * (self.rank + 1) // self.world]

    def parallel(self, model: nn.Module) -> nn.Module:
        """Wrap the model so that gradients are averaged over the ranks."""
        if self.world == 1:
            return model
        if self.shard:
            from regard.training import sharding

            return sharding.shard(model)
        if not any(parameter.requires_grad for parameter in model.parameters()):
            return model
        with warnings.catch_warnings():  # the oldest torch that we support lacks its new name
            warnings.filterwarnings("ignore", message="`broadcast_buffers` is deprecated")
            return DistributedDataParallel(model, broadcast_buffers=False)

    def gradient_sync(self, parallel: nn.Module, last: bool) -> AbstractContextManager[None]:
        """Context of one micro-batch; gradients are exchanged only in the last."""
        if isinstance(parallel, DistributedDataParallel) and not last:
            no_sync: AbstractContextManager[None] = parallel.no_sync()
            return no_sync
        if self.shard and self.world > 1:
            parallel.set_requires_gradient_sync(last)  # type: ignore[operator]
        return nullcontext()

    def sum(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Sum each number over the ranks."""
        return self._all_reduce(numbers, dist.ReduceOp.SUM)

    def max(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Take each number's maximum over the ranks, which is how they agree on flags."""
        return self._all_reduce(numbers, dist.ReduceOp.MAX)

    def broadcast(self, value: Any = None) -> Any:
        """Send rank 0's value to every rank, as JSON."""
        if self.world == 1:
            return value
        text = json.dumps(value).encode() if self.first else b""
        size = torch.tensor([len(text)], device=self.device)
        dist.broadcast(size, 0)
        content = torch.frombuffer(bytearray(text or bytes(int(size))), dtype=torch.uint8).to(self.device)
        dist.broadcast(content, 0)
        return json.loads(bytes(content.tolist()))

    def _all_reduce(self, numbers: Mapping[str, float], operation: Any) -> dict[str, float]:
        if self.world == 1:
            return dict(numbers)
        values = torch.tensor(list(numbers.values()), dtype=torch.float64, device=self.device)
        dist.all_reduce(values, operation)
        return dict(zip(numbers, values.tolist(), strict=True))


def full_tensor(tensor: Tensor) -> Tensor:
    """Gather a sharded tensor, on all ranks; any other is returned unchanged."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def is_first() -> bool:
    """True if this process prints and writes for all, before the process group exists."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def process_group(device: torch.device, *, shard: bool = False) -> Iterator[Ranks]:
    """Join the process group that `torchrun` started; without it, this process is the only rank."""
    if "WORLD_SIZE" not in os.environ or "RANK" not in os.environ:
        yield Ranks(device=device, shard=shard)
        return
    try:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
    except (ValueError, RuntimeError) as error:
        raise RunError(
            f"torchrun's processes could not connect ({str(error).splitlines()[0]}); start the same command "
            "on every node with the same --nnodes and --rdzv-endpoint"
        ) from None
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size(), device, shard)
    finally:
        dist.destroy_process_group()
