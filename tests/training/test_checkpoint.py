"""Checkpoints on disk: whole or absent, exact, and refused in one sentence when they are damaged."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from regard.data.batching import Place
from regard.errors import CheckpointError
from regard.linear import Linear
from regard.training import checkpoint
from regard.training.checkpoint import Progress

STEP = 42
PROGRESS = Progress(
    step=STEP,
    place=Place(3, 1, 5),
    seconds=7.5,
    threads=1,
    recent=(31, 42),
    best_score=0.25,
    best_step=11,
    stale=2,
    skipped=4,
    bad=(Place(2, 0, 7),),
    excluded=(Place(0, 1, 3), Place(1, 2, 5)),
    rollbacks=1,
)


def save(root: Path, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> Path:
    tensors = checkpoint.tensors_of(model, optimizer, None)
    return checkpoint.save(root, progress, lambda folder: checkpoint.write_whole(folder, tensors))


def trained(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model and an optimizer that have taken two steps, so that every moment is something."""
    torch.manual_seed(seed)
    model = nn.Sequential(Linear(3, 5), Linear(5, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(7, 3)).square().sum().backward()
        optimizer.step()
    return model, optimizer


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return save(tmp_path, *trained(1), PROGRESS)


def test_everything_comes_back_exactly(saved: Path) -> None:
    model, optimizer = trained(1)
    other, other_optimizer = trained(2)
    assert checkpoint.restore(saved.parent, STEP, other, other_optimizer) == PROGRESS
    x = torch.randn(7, 3)
    for one, opt in ((model, optimizer), (other, other_optimizer)):
        opt.zero_grad()
        one(x).sum().backward()
        opt.step()
    assert all(map(torch.equal, model.state_dict().values(), other.state_dict().values()))


def test_a_fresh_optimizer_takes_up_where_the_old_one_was(saved: Path) -> None:
    model, optimizer = trained(1)
    other = nn.Sequential(Linear(3, 5), Linear(5, 2))
    fresh = torch.optim.Adam(other.parameters(), lr=0.1)
    checkpoint.restore(saved.parent, STEP, other, fresh)
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        for kind in ("step", "exp_avg", "exp_avg_sq"):
            assert torch.equal(optimizer.state[mine][kind], fresh.state[theirs][kind])


def test_moments_that_were_not_there_yet_are_not_kept(tmp_path: Path) -> None:
    model = nn.Sequential(Linear(3, 5), Linear(5, 2))
    save(tmp_path, model, torch.optim.Adam(model.parameters()), Progress())
    other, optimizer = trained(2)
    checkpoint.restore(tmp_path, 0, other, optimizer)
    assert not any(optimizer.state[parameter] for parameter in other.parameters())


@pytest.mark.parametrize("steps", [0, 2])
def test_parts_of_processes_hold_the_moments_that_there_are(tmp_path: Path, steps: int) -> None:
    """None before the first step, and never any of what is frozen."""
    model, optimizer = trained(1) if steps else (nn.Sequential(Linear(3, 5), Linear(5, 2)), None)
    optimizer = optimizer or torch.optim.Adam(model.parameters())
    optimizer.state.pop(model[0].weight, None)
    tensors = checkpoint.tensors_of(model, optimizer, None)
    checkpoint.save(tmp_path, PROGRESS, lambda folder: checkpoint.write_sharded(folder, tensors))
    other, other_optimizer = trained(2)
    assert checkpoint.restore(tmp_path, STEP, other, other_optimizer) == PROGRESS
    assert all(map(torch.equal, model.state_dict().values(), other.state_dict().values()))
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        had, has = optimizer.state[mine], other_optimizer.state[theirs]
        assert had.keys() == has.keys()
        assert all(torch.equal(had[kind], has[kind]) for kind in had)


def test_is_plain_files_and_nothing_else(saved: Path) -> None:
    assert saved.name == "step-00000042"
    assert sorted(path.name for path in saved.iterdir()) == [
        "manifest.json",
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
    ]
    assert [path.name for path in saved.parent.iterdir()] == [saved.name], "nothing half-written is left"
    assert json.loads((saved / "state.json").read_text())["format_version"] == 3


def test_only_whole_checkpoints_are_used(saved: Path) -> None:
    root = saved.parent
    (root / ".step-00000050.partial").mkdir()
    (root / "step-notes").mkdir()
    (root / "step-00000060").mkdir()
    (root / "damaged-step-00000060").mkdir()
    assert checkpoint.saved_steps(root) == [STEP, 60]
    step, aside = checkpoint.newest_intact(root, [STEP, 60])
    assert step == STEP
    assert [(event.path.name, event.moved_to.name) for event in aside] == [
        ("step-00000060", "damaged-step-00000060-1")
    ]
    assert aside[0].fault == "manifest.json is missing or has changed since it was written"
    assert checkpoint.saved_steps(root / "absent") == []


def test_saving_again_replaces(saved: Path) -> None:
    model, optimizer = trained(3)
    assert save(saved.parent, model, optimizer, PROGRESS) == saved
    found = load_file(saved / "model.safetensors")
    assert all(torch.equal(found[name], tensor) for name, tensor in model.state_dict().items())


def test_an_average_is_the_mean(tmp_path: Path) -> None:
    models = [trained(seed) for seed in range(3)]
    for step, (model, optimizer) in enumerate(models):
        save(tmp_path, model, optimizer, Progress(step=step))
    mean = checkpoint.average(model, tmp_path, [0, 1, 2], "model")
    for name, tensor in mean.items():
        by_hand = sum(model.state_dict()[name].double() for model, _ in models) / 3
        assert tensor.dtype == torch.float32
        torch.testing.assert_close(tensor.double(), by_hand, rtol=1e-6, atol=1e-8)
    alone = checkpoint.average(model, tmp_path, [1], "model")
    assert all(torch.equal(alone[name], tensor) for name, tensor in models[1][0].state_dict().items())


def test_pruning_keeps_what_it_is_told(tmp_path: Path) -> None:
    for step in range(1, 6):
        save(tmp_path, *trained(1), Progress(step=step))
    checkpoint.prune(tmp_path, [2, 5, 5])
    assert checkpoint.saved_steps(tmp_path) == [2, 5]


def test_nothing_is_deleted_while_the_newest_is_damaged(tmp_path: Path) -> None:
    for step in range(1, 4):
        folder = save(tmp_path, *trained(1), Progress(step=step))
    (folder / "model.safetensors").write_bytes(b"")
    checkpoint.prune(tmp_path, [3])
    assert checkpoint.saved_steps(tmp_path) == [1, 2, 3]


def damage_json(folder: Path) -> None:
    (folder / "state.json").write_text('{"format_version": 3, ')


def damage_progress(folder: Path) -> None:
    (folder / "state.json").write_text('{"format_version": 3, "progress": {"stride": 3}}')


def damage_shape(folder: Path) -> None:
    (folder / "state.json").write_text("[]")


def truncate_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-5])


def truncate_moments(folder: Path) -> None:
    path = folder / "optimizer.safetensors"
    path.write_bytes(path.read_bytes()[:9])


def foreign_moments(folder: Path) -> None:
    save_file({"some/exp_avg": torch.zeros(3)}, folder / "optimizer.safetensors")


def misshapen_moments(folder: Path) -> None:
    moments = load_file(folder / "optimizer.safetensors")
    save_file(moments | {"0.weight/exp_avg": torch.zeros(2, 2)}, folder / "optimizer.safetensors")


def remove_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


DAMAGES: list[tuple[Callable[[Path], None], str]] = [
    (damage_json, "step-00000042: the checkpoint is damaged"),
    (damage_progress, "step-00000042: the checkpoint is damaged"),
    (damage_shape, "step-00000042: the checkpoint is damaged"),
    (truncate_weights, "model.safetensors: not a readable safetensors file"),
    (remove_weights, "model.safetensors: not a readable safetensors file"),
    (truncate_moments, r"optimizer\.safetensors: not a readable safetensors file"),
    (foreign_moments, "optimizer.safetensors: does not fit the model"),
    (misshapen_moments, "optimizer.safetensors: does not fit the model"),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_damage_is_said_in_one_sentence(saved: Path, damage: Callable[[Path], None], sentence: str) -> None:
    damage(saved)
    with pytest.raises(CheckpointError, match=sentence):
        checkpoint.restore(saved.parent, STEP, *trained(2))


def test_a_newer_format_is_not_guessed_at(saved: Path) -> None:
    (saved / "state.json").write_text('{"format_version": 4, "progress": {}}')
    with pytest.raises(CheckpointError, match=r"newer regard \(format 4, this one reads 3\); upgrade"):
        checkpoint.restore(saved.parent, STEP, *trained(2))


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    model, _ = trained(1)
    path = tmp_path / "model.safetensors"
    own = dict(model.state_dict())

    def refused(tensors: dict[str, torch.Tensor], sentence: str) -> None:
        save_file(tensors, path)
        with pytest.raises(CheckpointError, match=sentence):
            checkpoint.load_weights(path, model)

    refused({"0.weight": own["0.weight"]}, r"lacks tensor 0\.bias \(3 differ\)")
    refused(own | {"2.weight": torch.zeros(1)}, r"has an unknown tensor 2\.weight \(1 differ\)")
    refused(own | {"0.bias": torch.zeros(7)}, r"tensor 0\.bias has shape \(7,\), the model needs \(5,\)")


def test_refused_weights_change_nothing(tmp_path: Path) -> None:
    model, _ = trained(1)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    save_file({name: torch.zeros(1) for name in before}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="has shape"):
        checkpoint.load_weights(tmp_path / "model.safetensors", model)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
