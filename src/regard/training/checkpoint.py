"""Checkpoints: a folder of safetensors and JSON per saved step, complete or not there at all.

    checkpoints/step-00000500/model.safetensors      weights
                              optimizer.safetensors  Adam's moments, by parameter name
                              state.json             where training stands; format_version

No pickle, no random state: every step seeds its generator from (seed, step), so a position is two integers.
"""

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.errors import CheckpointError

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Progress:
    """Where training stands: everything that is not a tensor."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    """Batches of this epoch that are done."""
    seconds: float = 0.0
    best_score: float | None = None
    best_step: int = 0
    stale: int = 0
    """Validations since the best one."""
    threads: int = 0


def folder_of(root: Path, step: int) -> Path:
    return root / f"step-{step:08d}"


def saved_steps(root: Path) -> list[int]:
    """Complete checkpoints, oldest first."""
    found = (
        path.name.removeprefix("step-") for path in root.glob("step-*") if (path / "state.json").is_file()
    )
    return sorted(int(name) for name in found if name.isdigit())


def save(root: Path, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> Path:
    """Written under another name, then renamed: a reader sees a whole checkpoint or none."""
    final = folder_of(root, progress.step)
    partial = final.with_name(f".{final.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    save_file(dict(model.state_dict()), partial / "model.safetensors")
    save_file(_moments(model, optimizer), partial / "optimizer.safetensors")
    state = {"format_version": FORMAT_VERSION, "progress": asdict(progress)}
    (partial / "state.json").write_text(json.dumps(state, indent=1), "utf-8")
    shutil.rmtree(final, ignore_errors=True)
    os.replace(partial, final)
    return final


def restore(root: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    folder = folder_of(root, step)
    try:
        state = json.loads((folder / "state.json").read_text("utf-8"))
        if state["format_version"] > FORMAT_VERSION:
            raise CheckpointError(
                f"{folder}: written by a newer regard (format {state['format_version']}, this one reads "
                f"{FORMAT_VERSION}); upgrade regard"
            )
        progress = Progress(**state["progress"])
        moments = load_file(folder / "optimizer.safetensors")
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(f"{folder}: the checkpoint is damaged ({error})") from error
    load_weights(folder / "model.safetensors", model)
    _restore_moments(model, optimizer, moments, folder / "optimizer.safetensors")
    return progress


def load_weights(path: Path, model: nn.Module) -> None:
    """Copy a file's tensors into an allocated model; names and shapes must agree exactly."""
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file ({error})") from error
    fill(model, tensors, str(path))


def fill(model: nn.Module, tensors: dict[str, Tensor], where: str) -> None:
    own = model.state_dict()
    if wrong := sorted(own.keys() ^ tensors.keys()):
        side = "lacks" if wrong[0] in own else "has an unknown"
        raise CheckpointError(
            f"{where}: does not fit the model, it {side} tensor {wrong[0]} ({len(wrong)} differ)"
        )
    for name, tensor in own.items():
        found, needed = tuple(tensors[name].shape), tuple(tensor.shape)
        if found != needed:
            raise CheckpointError(f"{where}: tensor {name} has shape {found}, the model needs {needed}")
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


def average(root: Path, steps: Iterable[int]) -> dict[str, Tensor]:
    """The mean of the weights saved at these steps."""
    chosen = list(steps)
    total: dict[str, Tensor] = {}
    for step in chosen:
        for name, tensor in load_file(folder_of(root, step) / "model.safetensors").items():
            part = tensor.double() / len(chosen) if tensor.is_floating_point() else tensor
            total[name] = total[name] + part if name in total and tensor.is_floating_point() else part
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in total.items()}


def prune(root: Path, keep: Iterable[int]) -> None:
    """Delete every checkpoint but these."""
    kept = set(keep)
    for step in saved_steps(root):
        if step not in kept:
            shutil.rmtree(folder_of(root, step))


def _moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}/{kind}": value.contiguous()
        for parameter, state in optimizer.state.items()
        for kind, value in state.items()
    }


def _restore_moments(
    model: nn.Module, optimizer: torch.optim.Optimizer, moments: dict[str, Tensor], path: Path
) -> None:
    parameters = dict(model.named_parameters())
    for key, value in moments.items():
        name, _, kind = key.rpartition("/")
        parameter = parameters.get(name)
        if parameter is None or (kind != "step" and value.shape != parameter.shape):
            raise CheckpointError(f"{path}: does not fit the model, its {key} belongs to another")
        optimizer.state[parameter][kind] = value if kind == "step" else value.to(parameter.device)
