"""Checkpoints: a folder of safetensors and JSON per saved step, whole or absent, sealed against damage.

    checkpoints/step-00000500/model.safetensors      weights
                              optimizer.safetensors  Adam's moments, by parameter name
                              state.json             where training stands; format_version
                              manifest.json          the sha256 of each

No pickle, no random state: every step seeds its generator from (seed, step), so a position is two integers.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard import durable
from regard.errors import CheckpointError
from regard.training.events import SetAside

FORMAT_VERSION = 2

Position = tuple[int, int]
"""Epoch, and the number of a batch in it."""


@dataclass(frozen=True)
class Progress:
    """Where training stands: everything that is not a tensor."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    """Batches of this epoch that are done."""
    seconds: float = 0.0
    threads: int = 0
    recent: tuple[int, ...] = ()
    """The last validated steps: the newest says whether this one still has to be, all may be averaged."""
    best_score: float | None = None
    best_step: int = 0
    stale: int = 0
    """Validations since the best one."""
    skipped: int = 0
    """Updates left out because loss or gradient was not finite."""
    bad: tuple[Position, ...] = ()
    """The batches of the updates left out since the last good one."""
    excluded: tuple[Position, ...] = ()
    """Batches that led to a roll-back; they are passed over."""
    rollbacks: int = 0

    @property
    def validated(self) -> bool:
        return self.step == (self.recent[-1] if self.recent else 0)


def folder_of(root: Path, step: int) -> Path:
    return root / f"step-{step:08d}"


def saved_steps(root: Path) -> list[int]:
    """Steps that have a checkpoint, oldest first."""
    found = (path.name.removeprefix("step-") for path in root.glob("step-*") if path.is_dir())
    return sorted(int(name) for name in found if name.isdecimal() and name.isascii())


def save(root: Path, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> Path:
    def fill(folder: Path) -> None:
        save_file(dict(model.state_dict()), folder / "model.safetensors")
        durable.reached("after the weights")
        save_file(_moments(model, optimizer), folder / "optimizer.safetensors")
        durable.reached("after the moments")
        state = {"format_version": FORMAT_VERSION, "progress": asdict(progress)}
        (folder / "state.json").write_text(json.dumps(state, indent=1), "utf-8")
        durable.reached("before the seal")
        durable.seal(folder)

    final = folder_of(root, progress.step)
    durable.write_folder(final, fill)
    return final


def n_bytes(model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """What a checkpoint takes on the disk, but for a few kilobytes."""
    tensors = [*model.state_dict().values(), *_moments(model, optimizer).values()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def newest_whole(root: Path, steps: Sequence[int]) -> tuple[int | None, list[SetAside]]:
    """The last of these checkpoints that is as it was written; damaged ones after it are set aside."""
    aside: list[SetAside] = []
    for step in reversed(steps):
        fault = durable.damage(folder_of(root, step))
        if fault is None:
            return step, aside
        aside.append(_set_aside(folder_of(root, step), fault))
    return None, aside


def _set_aside(folder: Path, fault: str) -> SetAside:
    """Renamed, not deleted: it may be evidence, and it may hold what its owner can still use."""
    names = (folder.with_name(f"damaged-{folder.name}{f'-{n}' if n else ''}") for n in count())
    place = next(name for name in names if not name.exists())
    folder.rename(place)
    return SetAside(folder, fault, place)


def restore(root: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    folder = folder_of(root, step)
    try:
        state = json.loads((folder / "state.json").read_text("utf-8"))
        if state["format_version"] > FORMAT_VERSION:
            raise CheckpointError(
                f"{folder}: written by a newer regard (format {state['format_version']}, this one reads "
                f"{FORMAT_VERSION}); upgrade regard"
            )
        progress = Progress(**{name: _frozen(value) for name, value in state["progress"].items()})
        moments = load_file(folder / "optimizer.safetensors")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise CheckpointError(f"{folder}: the checkpoint is damaged ({error})") from error
    load_weights(folder / "model.safetensors", model)
    _restore_moments(model, optimizer, moments, folder / "optimizer.safetensors")
    return progress


def _frozen(value: Any) -> Any:
    """JSON has lists where we have tuples."""
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value


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
        if not torch.isfinite(tensors[name]).all():
            raise CheckpointError(f"{where}: tensor {name} holds numbers that are not finite; is it damaged?")
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
    """Delete every checkpoint but these, once the newest of them is known to be readable."""
    kept = set(keep)
    if not kept or durable.damage(folder_of(root, max(kept))) is not None:
        return
    for step in saved_steps(root):
        if step not in kept:
            with suppress(OSError):  # a disk that refuses to delete does not stop a training
                durable.remove_folder(folder_of(root, step))


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
