"""Numbers that are not finite: the update is left out, counted, and in the end escaped from."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.errors import RunError
from regard.layers.embed import Embed
from regard.training import loop
from regard.training.events import RolledBack, Skipped
from regard.training.loop import run
from regard.training.state import RankBatch, Training
from states import state

Make = Callable[..., Training]
Spoil = Callable[[str, float, Callable[[int, tuple[int, ...]], bool]], list[int]]


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Spoil:
    """`spoil(where, value, bad)`: updates whose (step, batch) is bad get that value into the place `where`.

    What comes back fills with their steps. Each is checked to leave weights and moments alone.
    """

    def install(where: str, value: float, bad: Callable[[int, tuple[int, ...]], bool]) -> list[int]:
        real, spoilt = loop.update, []

        def update(training: Training, load: RankBatch, step: int, lr: float) -> Any:
            if not bad(step, tuple(load.indices)):
                return real(training, load, step, lr)
            spoilt.append(step)
            before = state(training)
            with pytest.MonkeyPatch.context() as patch:
                if where == "loss":
                    loss = training.task.loss
                    patch.setattr(type(training.task), "loss", lambda _, *rest: scaled(loss(*rest), value))
                elif where == "input":
                    embed = Embed.forward
                    patch.setattr(Embed, "forward", lambda *given: embed(*given) * value)
                else:
                    patch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *_: torch.tensor(value))
                result = real(training, load, step, lr)
            assert all(map(torch.equal, before, state(training))), "a skipped update changed something"
            return result

        monkeypatch.setattr(loop, "update", update)
        return spoilt

    return install


def scaled(loss: Any, value: float) -> Any:
    parts = {name: replace(part, sum=part.sum * value) for name, part in loss.parts.items()}
    return replace(loss, parts=parts, shown={name: part * value for name, part in loss.shown.items()})


@pytest.mark.parametrize("where", ["loss", "gradient", "input"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_bad_update_changes_nothing_and_is_counted(
    make: Make, spoil: Spoil, where: str, value: float
) -> None:
    training = make(max_steps=120, eval_every=60)
    chosen = set(random.Random(where).sample(range(1, 120, 2), 50))
    spoilt = spoil(where, value, lambda step, batch: step in chosen)
    skipped = [event for event in run(training) if isinstance(event, Skipped)]
    assert [event.step for event in skipped] == sorted(chosen) == spoilt
    assert [event.total for event in skipped] == list(range(1, 51))
    assert training.progress.skipped == 50
    assert training.progress.rollbacks == 0
    for event in skipped:
        batch = training.order.batch(event.place)
        assert event.rows == tuple(training.train.row(i).where for i in batch)
        assert all(where.rpartition(":")[2].isdecimal() for where in event.rows)


def test_five_in_a_row_go_back_and_are_passed_over(make: Make, spoil: Spoil) -> None:
    training = make(max_steps=20, eval_every=100, save_every=4, batch_tokens=10)
    poisonous = {tuple(batch) for batch in list(training.order.epoch(0))[2:7]}
    spoil("loss", math.nan, lambda step, batch: batch in poisonous and training.progress.place.epoch == 0)
    events = list(run(training))
    [back] = [event for event in events if isinstance(event, RolledBack)]
    assert len(back.excluded) == 5
    assert (back.step, back.from_step) == (4, 7)
    assert training.progress.excluded == back.excluded
    assert training.progress.step == 20
    assert training.progress.skipped == 5


def test_gives_up_with_a_report(make: Make, spoil: Spoil) -> None:
    training = make(max_steps=100, eval_every=100, save_every=4)
    spoil("gradient", math.nan, lambda step, batch: step > 6)
    with pytest.raises(
        RunError, match=r"not finite in 5 updates in a row, .*after 3 roll-backs and 20 skipped"
    ):
        list(run(training))
    assert training.progress.rollbacks == 3


def test_a_spike_is_left_out_too(make: Make, spoil: Spoil) -> None:
    training = make(max_steps=90, eval_every=100, spike=3.0)
    spoil("loss", 10.0, lambda step, batch: step in (70, 80))
    assert not training.is_spike(1e9), "not before 64 losses are known"
    skipped = [event.step for event in run(training) if isinstance(event, Skipped)]
    assert skipped == [70, 80]
    assert len(training.progress.losses) == 64


def test_a_spike_is_judged_by_the_median(make: Make) -> None:
    """Neither a large loss among the recent ones nor a small one decides."""
    training = make(spike=3.0)
    usual = [1.0 + n / 1000 for n in range(62)]
    training.advance(losses=(50.0, *usual, 0.01))
    assert training.is_spike(3.2)
    assert not training.is_spike(3.0)
    training.advance(losses=(50.0, *usual))
    assert not training.is_spike(3.2), "one loss too few"
