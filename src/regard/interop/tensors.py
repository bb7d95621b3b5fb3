"""Weights from elsewhere: safetensors and nothing else, and no tensor that nobody asked for."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.errors import CheckpointError

WEIGHTS = "model.safetensors"
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Opened:
    """A file of which only names and shapes have been read so far."""

    path: Path
    file: Any
    names: dict[str, str]
    """Plain ones, and those in the file."""
    shapes: dict[str, Shape]

    def tensor(self, name: str) -> Tensor:
        found: Tensor = self.file.get_tensor(self.names[name])
        if not found.is_floating_point():
            kind = str(found.dtype).removeprefix("torch.")
            raise CheckpointError(
                f"{self.path}: tensor {name} holds {kind}; weights are floating-point numbers, save them so"
            )
        if not torch.isfinite(found.float()).all():
            raise CheckpointError(
                f"{self.path}: tensor {name} holds numbers that are not finite; is it damaged?"
            )
        return found.float()


@contextmanager
def opened(path: Path, plain: Callable[[str], str]) -> Iterator[Opened]:
    """`plain` takes off what names differ in from file to file."""
    if not path.is_file():
        if any(path.parent.glob(f"{path.stem}-*{path.suffix}")):
            raise CheckpointError(
                f"{path}: missing, the weights are in several files; save them as one "
                '(save_pretrained(…, max_shard_size="100GB"))'
            )
        raise CheckpointError(
            f"{path}: missing; weights in another format (pickle) are not read, save them as safetensors"
        )
    try:
        with safe_open(path, "pt") as file:
            stored = file.keys()
            names = {plain(name): name for name in stored}
            if len(names) < len(stored):
                raise CheckpointError(
                    f"{path}: two tensors have the same name but for a prefix; is it damaged?"
                )
            shapes = {name: tuple(file.get_slice(own).get_shape()) for name, own in names.items()}
            yield Opened(path, file, names, shapes)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file ({error})") from error


def refuse_others(file: Opened, needed: Mapping[str, Shape], passed_over: re.Pattern[str]) -> None:
    """Unless all is there that is needed, as it should be, and no more is."""
    found = file.shapes
    wrong = [name for name in needed if found.get(name) != needed[name]]
    wrong += [name for name in found if name not in needed and not passed_over.fullmatch(name)]
    if wrong:
        name = wrong[0]
        wanted = needed.get(name)
        if name not in found:
            fault = f"is missing, config.json asks for one of shape {wanted}"
        elif wanted is None:
            fault = "is none that such a model has"
        else:
            fault = f"has shape {found[name]}, config.json asks for {wanted}"
        raise CheckpointError(f"{file.path}: tensor {name} {fault} ({len(wrong)} differ)")
