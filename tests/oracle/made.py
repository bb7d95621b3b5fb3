"""A record of every tensor that comes into being: who claims that a tensor is never made must show it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Made(TorchDispatchMode):
    """Records the shape of all that any operation gives back, forward and backward."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[int, ...]] = []
        self.operations: list[str] = []
        self.narrow: set[str] = set()
        """Operations that gave back bfloat16."""

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves(made) if isinstance(leaf, Tensor)]
        self.shapes += [tuple(tensor.shape) for tensor in tensors]
        self.operations.append(str(func))
        if any(tensor.dtype == torch.bfloat16 for tensor in tensors):
            self.narrow.add(str(func))
        return made

    @property
    def sizes(self) -> set[int]:
        return {torch.Size(shape).numel() for shape in self.shapes}

    def count(self, operation: str) -> int:
        return sum(operation in name for name in self.operations)
