"""Sharding of weights, gradients and moments over the ranks (FSDP2), and sharded checkpoint files.

The files are those of `torch.distributed.checkpoint` in safetensors (its default storage pickles). Any number
of ranks can read what any number has written; a single process needs no process group for it. Import this
module only to shard: it takes torch a second.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

from regard.errors import CheckpointError

METHODS = ("start", "step", "encode", "project_kv")
"""Methods of models and layers that are called besides forward."""


def shard(model: nn.Module) -> nn.Module:
    """Shard a model in place: each layer, then the rest as a whole."""
    # keys and values leave a layer as views; nothing of ours changes them in place
    warnings.filterwarnings("ignore", message=r"FSDP2-wrapped module \(.*\) returned a view tensor")
    layers = [layer for module in model.modules() if isinstance(module, nn.ModuleList) for layer in module]
    for module in (*layers, model):
        fully_shard(module)
        for name in METHODS:
            if hasattr(module, name):
                register_fsdp_forward_method(module, name)
    return model


def write(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Write this rank's part of the tensors; all ranks call it."""
    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    with _faults_as(OSError), _quietly():
        save(tensors, storage_writer=writer, no_dist=not dist.is_initialized())


def names(folder: Path) -> list[str]:
    """Names of the tensors in a folder; none if there is no folder."""
    if not folder.is_dir():
        return []
    return [*HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata]


def read(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Read into the given tensors, however they are sharded."""
    reader = HuggingFaceStorageReader(str(folder))
    try:
        with _faults_as(CheckpointError), _quietly():
            load(tensors, storage_reader=reader, no_dist=not dist.is_initialized())
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise CheckpointError(f"{folder}: does not fit the model, or is damaged ({error})") from error


@contextmanager
def _faults_as(kind: type[Exception]) -> Iterator[None]:
    """Raise the first rank's error as `kind`."""
    try:
        yield
    except CheckpointException as error:
        rank, (fault, _) = next(iter(error.failures.items()))
        raise kind(f"process {rank}: {fault}") from error


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence torch's warning about a single process."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield
