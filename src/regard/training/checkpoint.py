"""Checkpoints: a folder of safetensors and JSON per saved step, whole or absent, sealed against damage.

    checkpoints/step-00000500/model.safetensors      weights
                              optimizer.safetensors  Adam's moments, by parameter name
                              ema.safetensors        the moving average of the weights, if there is one
                              state.json             where training stands; format_version
                              manifest.json          the sha256 of each

With train.shard: folders model/, optimizer/ and ema/, with a file from every process (sharding.py).
No pickle, no random state: every step seeds its generator from (seed, step), and the order of the data is
computed from (seed, epoch), so that a position is four integers.
"""

import json
from collections.abc import Callable, Iterable, Sequence
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
from regard.data.batching import START, Place
from regard.errors import CheckpointError
from regard.training.events import SetAside
from regard.training.muon import Muon
from regard.training.ranks import full_tensor

FORMAT_VERSION = 3


@dataclass(frozen=True)
class Progress:
    """Progress of a training: everything in a checkpoint that is not a tensor."""

    step: int = 0
    place: Place = START
    """The batch that comes next."""
    seconds: float = 0.0
    threads: int = 0
    recent: tuple[int, ...] = ()
    """The last validated steps, which may be averaged; the newest tells whether this step is validated."""
    best_score: float | None = None
    best_loss: float | None = None
    """Loss at the best score; it breaks ties between equal scores."""
    best_step: int = 0
    stale: int = 0
    """Validations since the best one."""
    skipped: int = 0
    """Updates skipped because loss or gradient was not finite, or the loss a spike."""
    bad: tuple[Place, ...] = ()
    """Batches whose updates were skipped since the last good one."""
    excluded: tuple[Place, ...] = ()
    """Batches that led to a roll-back; they are not used again."""
    rollbacks: int = 0
    parts: int = 1
    """Micro-batches per batch, to fit into memory."""
    losses: tuple[float, ...] = ()
    """The most recent losses, to detect spikes."""

    @property
    def validated(self) -> bool:
        return self.step in self.recent[-1:]


def folder_of(root: Path, step: int) -> Path:
    return root / f"step-{step:08d}"


def saved_steps(root: Path) -> list[int]:
    """Steps that have a checkpoint, oldest first."""
    names = (path.name.removeprefix("step-") for path in root.glob("step-*") if path.is_dir())
    return sorted(int(name) for name in names if name.isdecimal() and name.isascii())


def tensors_of(
    model: nn.Module, optimizer: torch.optim.Optimizer, averaged: dict[str, Tensor] | None
) -> dict[str, dict[str, Tensor]]:
    """Tensors of a checkpoint, by the name of their file or folder."""
    tensors = {"model": dict(model.state_dict()), "optimizer": _moments(model, optimizer)}
    return tensors if averaged is None else {**tensors, "ema": averaged}


def write_whole(folder: Path, tensors: dict[str, dict[str, Tensor]]) -> None:
    for name, group in tensors.items():
        save_file(group, folder / f"{name}.safetensors")
        durable.reached(f"after the {name}")


def write_sharded(folder: Path, tensors: dict[str, dict[str, Tensor]]) -> None:
    """Write this rank's part of every tensor; all ranks call it."""
    from regard.training import sharding

    for name, group in tensors.items():
        sharding.write(folder / name, group)


def save(root: Path, progress: Progress, write: Callable[[Path], None]) -> Path:
    """Save a checkpoint; `write` puts the tensors into its folder, which appears only once it is complete."""

    def fill(folder: Path) -> None:
        write(folder)
        state = {"format_version": FORMAT_VERSION, "progress": asdict(progress)}
        (folder / "state.json").write_text(json.dumps(state, indent=1), "utf-8")
        durable.reached("before the seal")
        durable.seal(folder)

    final = folder_of(root, progress.step)
    durable.write_folder(final, fill)
    return final


def n_bytes(model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Size of a checkpoint on disk, except for a few kilobytes."""
    tensors = [*model.state_dict().values(), *_moments(model, optimizer).values()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def newest_intact(root: Path, steps: Sequence[int]) -> tuple[int | None, list[SetAside]]:
    """Newest of these checkpoints that is intact; damaged ones after it are renamed."""
    renamed: list[SetAside] = []
    for step in reversed(steps):
        fault = durable.damage(folder_of(root, step))
        if fault is None:
            return step, renamed
        renamed.append(_set_aside(folder_of(root, step), fault))
    return None, renamed


def _set_aside(folder: Path, fault: str) -> SetAside:
    """Rename a damaged checkpoint instead of deleting it: its owner may still want what it holds."""
    names = (folder.with_name(f"damaged-{folder.name}{f'-{n}' if n else ''}") for n in count())
    new_name = next(name for name in names if not name.exists())
    folder.rename(new_name)
    return SetAside(folder, fault, new_name)


def restore(root: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    """Load weights and moments into model and optimizer; returns the progress at that step."""
    folder = folder_of(root, step)
    try:
        state = durable.read_json(folder / "state.json")
        if state["format_version"] > FORMAT_VERSION:
            raise CheckpointError(
                f"{folder}: written by a newer regard (format {state['format_version']}, this one reads "
                f"{FORMAT_VERSION}); upgrade regard"
            )
        if state["format_version"] < FORMAT_VERSION:
            raise CheckpointError(
                f"{folder}: written by an older regard (format {state['format_version']}, this one reads "
                f"{FORMAT_VERSION}), which used another order of the data; start over with --fresh"
            )
        progress = _progress(state["progress"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{folder}: the checkpoint is damaged ({error})") from error
    if (folder / "model").is_dir():
        _restore_sharded(folder, model, optimizer)
    else:
        load_weights(folder / "model.safetensors", model)
        _restore_moments(model, optimizer, folder / "optimizer.safetensors")
    return progress


def _restore_sharded(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Load the parts that this rank holds, whatever number of ranks wrote them."""
    from regard.training import sharding

    sharding.read(folder / "model", dict(model.state_dict()))
    optimizer.state.clear()
    parameters = dict(model.named_parameters())
    for key in sharding.names(folder / "optimizer"):
        name, _, kind = key.rpartition("/")
        if name in parameters:
            parameter = parameters[name]
            optimizer.state[parameter][kind] = (
                torch.zeros(()) if kind == "step" else torch.zeros_like(parameter)
            )
    if optimizer.state:
        sharding.read(folder / "optimizer", _moments(model, optimizer))


def _load(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file ({error})") from error


def _progress(saved: dict[str, Any]) -> Progress:
    """Read Progress from JSON, turning its lists into tuples and places."""
    places = {name: tuple(Place(*place) for place in saved[name]) for name in ("bad", "excluded")}
    tuples = {name: tuple(saved[name]) for name in ("recent", "losses")}
    return Progress(**{**saved, **places, **tuples, "place": Place(*saved["place"])})


def load_weights(path: Path, model: nn.Module) -> None:
    """Copy a file's tensors into an allocated model; names and shapes must agree exactly."""
    fill(model, _load(path), str(path))


def fill(model: nn.Module, tensors: dict[str, Tensor], where: str) -> None:
    """Copy tensors into an allocated model; CheckpointError, naming `where`, unless they fit exactly."""
    state = model.state_dict()
    if wrong := sorted(state.keys() ^ tensors.keys()):
        fault = "lacks" if wrong[0] in state else "has an unknown"
        raise CheckpointError(
            f"{where}: does not fit the model, it {fault} tensor {wrong[0]} ({len(wrong)} differ)"
        )
    for name, tensor in state.items():
        shape, needed = tuple(tensors[name].shape), tuple(tensor.shape)
        if shape != needed:
            raise CheckpointError(f"{where}: tensor {name} has shape {shape}, the model needs {needed}")
        if not full_tensor(torch.isfinite(tensors[name].to(tensor.dtype)).all()):
            raise CheckpointError(f"{where}: tensor {name} holds numbers that are not finite; is it damaged?")
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(tensors[name])


def read_like(like: dict[str, Tensor], root: Path, step: int, name: str) -> dict[str, Tensor]:
    """Read the tensors saved under a name, sharded as `like` is."""
    folder = folder_of(root, step)
    if not (folder / name).is_dir():
        return _load(folder / f"{name}.safetensors")
    from regard.training import sharding

    tensors = {key: torch.zeros_like(tensor) for key, tensor in like.items()}
    sharding.read(folder / name, tensors)
    return tensors


def average(model: nn.Module, root: Path, steps: Iterable[int], name: str) -> dict[str, Tensor]:
    """Average the tensors saved under a name at these steps."""
    chosen = list(steps)
    total: dict[str, Tensor] = {}
    for step in chosen:
        for key, tensor in read_like(dict(model.state_dict()), root, step, name).items():
            part = tensor.double() / len(chosen) if tensor.is_floating_point() else tensor
            total[key] = total[key] + part if key in total and tensor.is_floating_point() else part
    return {key: tensor.float() if tensor.is_floating_point() else tensor for key, tensor in total.items()}


def prune(root: Path, keep: Iterable[int]) -> None:
    """Delete all other checkpoints, provided the newest of those to keep is intact."""
    kept = set(keep)
    if not kept or durable.damage(folder_of(root, max(kept))) is not None:
        return
    for step in saved_steps(root):
        if step not in kept:
            with suppress(OSError):  # a failed deletion does not stop a training
                durable.remove_folder(folder_of(root, step))


def _moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}/{kind}": value.contiguous()
        for parameter, state in optimizer.state.items()
        for kind, value in state.items()
    }


def _restore_moments(model: nn.Module, optimizer: torch.optim.Optimizer, path: Path) -> None:
    """Restore the moments that this optimizer uses; accepted changes may have replaced the optimizer."""
    parameters = dict(model.named_parameters())
    saved: dict[nn.Parameter, dict[str, Tensor]] = {}
    for key, value in _load(path).items():
        name, _, kind = key.rpartition("/")
        parameter = parameters.get(name)
        if parameter is None or (kind != "step" and value.shape != parameter.shape):
            raise CheckpointError(f"{path}: does not fit the model, which has no {key} of this shape")
        moments = saved.setdefault(parameter, {})
        moments[kind] = value if kind == "step" else value.to(parameter.device)
    by_momentum = optimizer.matrices if isinstance(optimizer, Muon) else set()
    optimizer.state.clear()
    for parameter, moments in saved.items():
        if ("momentum" in moments) == (parameter in by_momentum):
            optimizer.state[parameter] = moments
