"""Disks that refuse, and disks that lie: what training does about each."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from regard import durable
from regard.errors import CheckpointError, RunError
from regard.training import checkpoint
from regard.training.events import Evaluated, Finished, Saved, SaveFailed, SetAside
from regard.training.loop import run
from regard.training.state import Training
from states import state

Make = Callable[..., Training]


def script_scores(monkeypatch: pytest.MonkeyPatch, scores: list[float]) -> None:
    """Validations give these scores, one after another."""
    left, tally = iter(scores), SimpleNamespace(signatures=dict)
    monkeypatch.setattr(Training, "score", lambda *_, **__: ({"loss": 0.0, "bleu": next(left)}, tally))


def refuse(training: Training, monkeypatch: pytest.MonkeyPatch, code: int, steps: set[int]) -> None:
    real = durable.write_folder

    def writing(final: Path, fill: Callable[[Path], None]) -> None:
        if training.progress.step in steps:
            raise OSError(code, os.strerror(code))
        real(final, fill)

    monkeypatch.setattr(durable, "write_folder", writing)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_training_outlives_a_disk_that_refuses_twice(
    make: Make, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    whole = make("whole", max_steps=9, eval_every=3, save_every=1)
    list(run(whole))
    training = make("refused", max_steps=9, eval_every=3, save_every=1)
    refuse(training, monkeypatch, code, {2, 4, 5})
    events = list(run(training))
    failed = [event for event in events if isinstance(event, SaveFailed)]
    assert [(event.step, event.in_a_row) for event in failed] == [(2, 1), (4, 1), (5, 2)]
    assert failed[0].why == os.strerror(code)
    assert all(map(torch.equal, state(whole), state(training)))


def test_three_refusals_end_it_and_say_what_is_needed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    training = make(max_steps=9, eval_every=9, save_every=1)
    refuse(training, monkeypatch, errno.ENOSPC, {3, 4, 5})
    with pytest.raises(
        RunError, match=r"3 checkpoints in a row .*No space left.* needs [\d,]+ bytes .* of step 2"
    ):
        list(run(training))
    needed = checkpoint.n_bytes(training.model, training.optimizer)
    folder = checkpoint.folder_of(training.checkpoints, 2)
    assert durable.damage(folder) is None
    on_disk = sum((folder / name).stat().st_size for name in ("model.safetensors", "optimizer.safetensors"))
    assert needed <= on_disk <= 2 * needed + 10_000


def test_a_score_whose_weights_were_lost_is_not_the_best(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [1.0, 9.0, 2.0, 2.0]
    script_scores(monkeypatch, scores)
    training = make(max_steps=3, eval_every=1)
    refuse(training, monkeypatch, errno.ENOSPC, {2})
    events = list(run(training))
    assert [event.best for event in events if isinstance(event, Evaluated)] == [True, True, True]
    assert training.progress.best_step == 3


def test_weights_that_no_validation_saw_are_not_the_model(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = make(max_steps=3, eval_every=3)
    refuse(training, monkeypatch, errno.ENOSPC, {3})
    with pytest.raises(CheckpointError, match="no validated checkpoint is intact; make room on the disk"):
        list(run(training))
    monkeypatch.undo()
    again = make(max_steps=3, eval_every=3)
    again.resume()
    assert isinstance(list(run(again))[-1], Finished)


def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_is_used(make: Make) -> None:
    plan = {"max_steps": 8, "eval_every": 2}
    whole = make("whole", **plan)
    list(run(whole))
    begun = make("damaged", **plan)
    for event in run(begun):
        if isinstance(event, Saved) and event.step == 6:
            break
    weights = begun.checkpoints / "step-00000006" / "model.safetensors"
    spoilt = bytearray(weights.read_bytes())
    spoilt[len(spoilt) // 2] ^= 4
    weights.write_bytes(bytes(spoilt))
    again = make("damaged", model_seed=99, **plan)
    [aside] = again.resume()
    assert isinstance(aside, SetAside)
    assert aside.fault == "model.safetensors has changed since it was written"
    assert (aside.moved_to / "model.safetensors").read_bytes() == bytes(spoilt), "kept as it is"
    assert again.progress.step == 4
    list(run(again))
    assert all(map(torch.equal, state(whole), state(again)))


def test_when_none_is_whole_nothing_is_guessed(make: Make) -> None:
    begun = make(max_steps=4, eval_every=2)
    list(run(begun))
    for folder in begun.checkpoints.iterdir():
        (folder / "state.json").unlink()
    with pytest.raises(
        CheckpointError, match=r"state\.json is missing, and no older checkpoint is intact; .*--fresh"
    ):
        make(max_steps=4, eval_every=2).resume()


def test_a_damaged_best_is_not_the_model(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [9.0, 2.0, 1.0, 1.5]
    script_scores(monkeypatch, scores)
    training = make(max_steps=3, eval_every=1)
    for event in run(training):
        if isinstance(event, Saved) and event.step == 3:
            (training.checkpoints / "step-00000001" / "model.safetensors").write_bytes(b"")
        last = event
    assert isinstance(last, Finished)
    assert last.chosen == "checkpoint of step 3, as the best one is damaged"
    assert last.metrics["bleu"] == 1.5


def test_saves_by_time_too(make: Make) -> None:
    training = make(max_steps=4, eval_every=100, save_minutes=1e-9)
    assert [event.step for event in run(training) if isinstance(event, Saved)] == [0, 1, 2, 3, 4]
