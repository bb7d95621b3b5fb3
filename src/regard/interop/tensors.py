"""Reading weights from elsewhere: safetensors only, and no unexpected tensors."""

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
class TensorFile:
    """An open safetensors file of which only names and shapes have been read so far."""

    path: Path
    file: Any
    names: dict[str, str]
    """Normalized names, and the names in the file."""
    shapes: dict[str, Shape]

    def tensor(self, name: str) -> Tensor:
        tensor: Tensor = self.file.get_tensor(self.names[name])
        if not tensor.is_floating_point():
            dtype = str(tensor.dtype).removeprefix("torch.")
            raise CheckpointError(
                f"{self.path}: tensor {name} is {dtype}, but weights are floating-point; save it as float32"
            )
        if not torch.isfinite(tensor.float()).all():
            raise CheckpointError(
                f"{self.path}: tensor {name} holds numbers that are not finite; is it damaged?"
            )
        return tensor.float()


@contextmanager
def open_tensors(path: Path, normalize: Callable[[str], str]) -> Iterator[TensorFile]:
    """Open a safetensors file; `normalize` removes what tensor names differ in from file to file."""
    if not path.is_file():
        if any(path.parent.glob(f"{path.stem}-*{path.suffix}")):
            raise CheckpointError(
                f"{path}: missing, because the weights are split into several files; save them as one with "
                'save_pretrained(…, max_shard_size="100GB")'
            )
        raise CheckpointError(
            f"{path}: missing; other formats (pickle) are not read, save the weights as safetensors"
        )
    try:
        with safe_open(path, "pt") as file:
            stored = file.keys()
            names = {normalize(name): name for name in stored}
            if len(names) < len(stored):
                raise CheckpointError(
                    f"{path}: two tensors have the same name except for a prefix; is it damaged?"
                )
            shapes = {name: tuple(file.get_slice(key).get_shape()) for name, key in names.items()}
            yield TensorFile(path, file, names, shapes)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file ({error})") from error


def check_tensors(file: TensorFile, expected: Mapping[str, Shape], ignored: re.Pattern[str]) -> None:
    """Raise CheckpointError unless the file has exactly the expected names and shapes, `ignored` apart."""
    shapes = file.shapes
    wrong = [name for name in expected if shapes.get(name) != expected[name]]
    wrong += [name for name in shapes if name not in expected and not ignored.fullmatch(name)]
    if wrong:
        name = wrong[0]
        shape = expected.get(name)
        if name not in shapes:
            fault = f"is missing, config.json requires one of shape {shape}"
        elif shape is None:
            fault = "does not belong to this architecture"
        else:
            fault = f"has shape {shapes[name]}, config.json requires {shape}"
        raise CheckpointError(f"{file.path}: tensor {name} {fault} ({len(wrong)} differ)")
