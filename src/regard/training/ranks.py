"""This process among its equals: what `torchrun` starts, or one alone.

Every rank takes its share of each global batch; sums and decisions are agreed, so that all go the same way.
What rank 0 says, it says in JSON: nothing is pickled, not even between processes.
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

PATIENCE = timedelta(hours=2)
"""How long the others wait while rank 0 validates, scores or saves."""

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    rank: int = 0
    world: int = 1
    device: torch.device | None = None
    shard: bool = False
    """Whether each holds a part of the model only, so that all must take part in whatever it computes."""

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, rows: Sequence[T]) -> Sequence[T]:
        """This rank's part of a batch: nearly equal parts in order, none left out."""
        return rows[len(rows) * self.rank // self.world : len(rows) * (self.rank + 1) // self.world]

    def parallel(self, model: nn.Module) -> nn.Module:
        """The model with gradients that are averaged over the ranks."""
        if self.world == 1:
            return model
        if self.shard:
            from regard.training import sharding

            return sharding.shard(model)
        if not any(parameter.requires_grad for parameter in model.parameters()):
            return model
        with warnings.catch_warnings():  # its other name is not known to the oldest torch that we take
            warnings.filterwarnings("ignore", message="`broadcast_buffers` is deprecated")
            return DistributedDataParallel(model, broadcast_buffers=False)

    def summing(self, parallel: nn.Module, last: bool) -> AbstractContextManager[None]:
        """Only the last part of a batch pays for the exchange."""
        if isinstance(parallel, DistributedDataParallel) and not last:
            waiting: AbstractContextManager[None] = parallel.no_sync()
            return waiting
        if self.shard and self.world > 1:
            parallel.set_requires_gradient_sync(last)  # type: ignore[operator]
        return nullcontext()

    def sums(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Each number summed over the ranks."""
        return self._reduced(numbers, dist.ReduceOp.SUM)

    def most(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Each number's largest value on any rank: how flags are agreed."""
        return self._reduced(numbers, dist.ReduceOp.MAX)

    def told(self, value: Any = None) -> Any:
        """What rank 0 gives, on every rank."""
        if self.world == 1:
            return value
        text = json.dumps(value).encode() if self.first else b""
        size = torch.tensor([len(text)], device=self.device)
        dist.broadcast(size, 0)
        content = torch.frombuffer(bytearray(text or bytes(int(size))), dtype=torch.uint8).to(self.device)
        dist.broadcast(content, 0)
        return json.loads(bytes(content.tolist()))

    def _reduced(self, numbers: Mapping[str, float], how: Any) -> dict[str, float]:
        if self.world == 1:
            return dict(numbers)
        values = torch.tensor(list(numbers.values()), dtype=torch.float64, device=self.device)
        dist.all_reduce(values, how)
        return dict(zip(numbers, values.tolist(), strict=True))


def whole(tensor: Tensor) -> Tensor:
    """A tensor of which each rank holds a part, put together; any other as it is. All ranks call it."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def is_first() -> bool:
    """Whether this process speaks and writes for all, as far as it can know before they have met."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def joined(device: torch.device, *, shard: bool = False) -> Iterator[Ranks]:
    """The ranks that `torchrun` started, met and in agreement; alone without it."""
    if "WORLD_SIZE" not in os.environ or "RANK" not in os.environ:
        yield Ranks(device=device, shard=shard)
        return
    try:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    except (ValueError, RuntimeError) as error:
        raise RunError(
            f"torchrun's processes did not meet ({str(error).splitlines()[0]}); start the same command on "
            "every node with the same --nnodes and --rdzv-endpoint"
        ) from None
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size(), device, shard)
    finally:
        dist.destroy_process_group()
