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
from regard.training.ranks import whole

FORMAT_VERSION = 3


@dataclass(frozen=True)
class Progress:
    """Where training stands: everything that is not a tensor."""

    step: int = 0
    place: Place = START
    """The batch that comes next."""
    seconds: float = 0.0
    threads: int = 0
    recent: tuple[int, ...] = ()
    """The last validated steps: the newest says whether this one still has to be, all may be averaged."""
    best_score: float | None = None
    best_loss: float | None = None
    """Of the best score, which several steps may share."""
    best_step: int = 0
    stale: int = 0
    """Validations since the best one."""
    skipped: int = 0
    """Updates left out because loss or gradient was not finite."""
    bad: tuple[Place, ...] = ()
    """The batches of the updates left out since the last good one."""
    excluded: tuple[Place, ...] = ()
    """Batches that led to a roll-back; they are passed over."""
    rollbacks: int = 0
    parts: int = 1
    """Into which a batch is split to fit into memory."""
    losses: tuple[float, ...] = ()
    """The last ones, where spikes are looked for."""

    @property
    def validated(self) -> bool:
        return self.step in self.recent[-1:]


def folder_of(root: Path, step: int) -> Path:
    return root / f"step-{step:08d}"


def saved_steps(root: Path) -> list[int]:
    """Steps that have a checkpoint, oldest first."""
    found = (path.name.removeprefix("step-") for path in root.glob("step-*") if path.is_dir())
    return sorted(int(name) for name in found if name.isdecimal() and name.isascii())


def tensors_of(
    model: nn.Module, optimizer: torch.optim.Optimizer, averaged: dict[str, Tensor] | None
) -> dict[str, dict[str, Tensor]]:
    """What a checkpoint holds, by the name of the file or folder."""
    found = {"model": dict(model.state_dict()), "optimizer": _moments(model, optimizer)}
    return found if averaged is None else {**found, "ema": averaged}


def write_whole(folder: Path, tensors: dict[str, dict[str, Tensor]]) -> None:
    for name, group in tensors.items():
        save_file(group, folder / f"{name}.safetensors")
        durable.reached(f"after the {name}")


def write_sharded(folder: Path, tensors: dict[str, dict[str, Tensor]]) -> None:
    """Every rank calls it."""
    from regard.training import sharding

    for name, group in tensors.items():
        sharding.write(folder / name, group)


def save(root: Path, progress: Progress, write: Callable[[Path], None]) -> Path:
    """`write` puts the tensors into a folder, which becomes the checkpoint when it is whole."""

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
        if state["format_version"] < FORMAT_VERSION:
            raise CheckpointError(
                f"{folder}: written by an older regard (format {state['format_version']}, this one reads "
                f"{FORMAT_VERSION}), which took the data in another order; start over with --fresh"
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
    """Into the parts that this rank holds, whatever parts were written."""
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


def _loaded(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file ({error})") from error


def _progress(saved: dict[str, Any]) -> Progress:
    """JSON has lists where we have tuples and places."""
    places = {name: tuple(Place(*place) for place in saved[name]) for name in ("bad", "excluded")}
    plain = {name: tuple(saved[name]) for name in ("recent", "losses")}
    return Progress(**{**saved, **places, **plain, "place": Place(*saved["place"])})


def load_weights(path: Path, model: nn.Module) -> None:
    """Copy a file's tensors into an allocated model; names and shapes must agree exactly."""
    fill(model, _loaded(path), str(path))


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
        if not whole(torch.isfinite(tensors[name].to(tensor.dtype)).all()):
            raise CheckpointError(f"{where}: tensor {name} holds numbers that are not finite; is it damaged?")
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


def read_like(like: dict[str, Tensor], root: Path, step: int, name: str) -> dict[str, Tensor]:
    """The tensors saved under this name, shared out as `like` is."""
    folder = folder_of(root, step)
    if not (folder / name).is_dir():
        return _loaded(folder / f"{name}.safetensors")
    from regard.training import sharding

    tensors = {key: torch.zeros_like(tensor) for key, tensor in like.items()}
    sharding.read(folder / name, tensors)
    return tensors


def average(model: nn.Module, root: Path, steps: Iterable[int], name: str) -> dict[str, Tensor]:
    """The mean of what was saved under this name at these steps."""
    chosen = list(steps)
    total: dict[str, Tensor] = {}
    for step in chosen:
        for key, tensor in read_like(dict(model.state_dict()), root, step, name).items():
            part = tensor.double() / len(chosen) if tensor.is_floating_point() else tensor
            total[key] = total[key] + part if key in total and tensor.is_floating_point() else part
    return {key: tensor.float() if tensor.is_floating_point() else tensor for key, tensor in total.items()}


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


def _restore_moments(model: nn.Module, optimizer: torch.optim.Optimizer, path: Path) -> None:
    """Of every parameter whose moments this optimizer keeps; it may be another one, by accepted changes."""
    parameters = dict(model.named_parameters())
    saved: dict[nn.Parameter, dict[str, Tensor]] = {}
    for key, value in _loaded(path).items():
        name, _, kind = key.rpartition("/")
        parameter = parameters.get(name)
        if parameter is None or (kind != "step" and value.shape != parameter.shape):
            raise CheckpointError(f"{path}: does not fit the model, its {key} belongs to another")
        moments = saved.setdefault(parameter, {})
        moments[kind] = value if kind == "step" else value.to(parameter.device)
    by_momentum = optimizer.matrices if isinstance(optimizer, Muon) else set()
    optimizer.state.clear()
    for parameter, moments in saved.items():
        if ("momentum" in moments) == (parameter in by_momentum):
            optimizer.state[parameter] = moments
