"""Signals: a checkpoint first, and the rest as if nothing had happened."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from regard.training.events import Evaluated, Event, Saved, Step
from regard.training.loop import run
from regard.training.state import Training
from regard.training.stopping import SIGNALS, Interrupted, Stop
from states import state

Make = Callable[..., Training]


def run_until_interrupted(
    training: Training, react: Callable[[Event], None]
) -> tuple[Interrupted, list[Event]]:
    seen: list[Event] = []
    try:
        for event in run(training):
            seen.append(event)
            react(event)
    except Interrupted as stopped:
        return stopped, seen
    raise AssertionError("it was not interrupted")


@pytest.fixture(autouse=True)
def _a_terminal() -> Iterator[None]:
    """As if there were one: whoever runs the tests may have had SIGHUP ignored."""
    if not hasattr(signal, "SIGHUP"):
        yield
        return
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def listening(_a_terminal: None) -> Iterator[Stop]:
    stop = Stop()
    with stop.listening():
        yield stop


@pytest.mark.parametrize("signum", SIGNALS)
@pytest.mark.parametrize("moment", [Step, Evaluated, Saved])
def test_a_signal_saves_and_goes_and_the_rest_is_the_same(
    make: Make, listening: Stop, signum: int, moment: type[Event]
) -> None:
    plan = {"max_steps": 8, "eval_every": 3}
    whole = make("whole", **plan)
    list(run(whole))
    stopped = make("stopped", **plan)
    stopped.stop = listening

    def react(event: Any) -> None:
        if isinstance(event, moment) and event.step == 3 and listening.received is None:
            os.kill(os.getpid(), signum)

    raised, seen = run_until_interrupted(stopped, react)
    assert raised.signum == signum
    assert stopped.saved_at == stopped.progress.step == 3
    assert sum(isinstance(event, Step) for event in seen) == 3
    again = make("stopped", model_seed=99, **plan)
    again.resume()
    assert again.progress.step == 3
    list(run(again))
    assert all(map(torch.equal, state(whole), state(again)))


def test_a_signal_during_validation_does_not_wait_for_its_end(make: Make, listening: Stop) -> None:
    plan: dict[str, Any] = {"max_steps": 6, "eval_every": 3}
    whole = make("whole", **plan)
    list(run(whole))
    stopped = make("stopped", **plan)
    stopped.stop = listening
    real, scored = stopped.task.measure, 0

    def measure(*arguments: Any, **named: Any) -> Any:
        nonlocal scored
        scored += 1
        os.kill(os.getpid(), signal.SIGTERM)
        return real(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(stopped.task), "measure", lambda _, *rest, **named: measure(*rest, **named))
        run_until_interrupted(stopped, lambda event: None)
    assert scored == 1
    assert stopped.saved_at == 3
    again = make("stopped", model_seed=99, **plan)
    again.resume()
    assert not again.progress.validated
    events = list(run(again))
    assert isinstance(events[0], Evaluated), "the validation that was cut short comes first"
    assert all(map(torch.equal, state(whole), state(again)))


def test_a_second_signal_does_not_wait(make: Make, listening: Stop) -> None:
    training = make(max_steps=8, eval_every=3)
    training.stop = listening

    def react(event: Event) -> None:
        if isinstance(event, Step) and event.step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)
            raise AssertionError("still here")

    run_until_interrupted(training, react)


def test_a_second_signal_within_an_update_saves_nothing(
    make: Make, listening: Stop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights would be those of a step that is not counted yet."""
    whole = make("whole", max_steps=4, eval_every=4)
    list(run(whole))
    training = make("stopped", max_steps=4, eval_every=4)
    training.stop = listening
    real = training.optimizer.step

    def interrupted() -> None:
        real()
        if training.progress.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(training.optimizer, "step", interrupted)
    _, seen = run_until_interrupted(training, lambda event: None)
    assert [event.step for event in seen if isinstance(event, Saved)] == [0]
    again = make("stopped", max_steps=4, eval_every=4)
    again.resume()
    list(run(again))
    assert all(map(torch.equal, state(whole), state(again)))


def test_signals_are_given_back(listening: Stop) -> None:
    assert signal.getsignal(signal.SIGTERM) == listening._receive
    with pytest.raises(Interrupted, match="SIGTERM"):
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_that_c_code_made_an_error_of_is_still_a_signal() -> None:
    def determine_a_shape() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except Interrupted:
            raise ValueError("could not determine the shape") from None

    with pytest.raises(Interrupted) as stopped, Stop().listening():
        determine_a_shape()
    assert stopped.value.signum == signal.SIGTERM
    assert isinstance(stopped.value.__cause__, ValueError)


def test_an_error_after_a_deferred_signal_stays_an_error() -> None:
    stop = Stop()

    def save() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"), stop.listening(), stop.deferred():
        save()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no terminals that hang up")
def test_what_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Stop().listening():
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGHUP)
