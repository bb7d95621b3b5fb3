"""Batches that fit: parts found by trying, remembered, and without any effect on the result."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from regard.errors import RunError
from regard.training import micro_batches
from regard.training.events import Finished, Split, Step
from regard.training.loop import run
from regard.training.micro_batches import find_micro_batches, is_memory_error
from regard.training.state import Training

Make = Callable[..., Training]


def out_of_memory() -> RuntimeError:
    """What the CPU's allocator says."""
    try:
        torch.empty(2**60, dtype=torch.uint8)
    except RuntimeError as error:
        return error
    raise AssertionError("this machine has an exbibyte of memory")


@pytest.fixture
def at_most(monkeypatch: pytest.MonkeyPatch) -> Callable[[Training, int], None]:
    """Parts of more rows than this do not fit."""

    def limit(training: Training, rows: int) -> None:
        real = type(training.task).loss

        def loss(task: Any, model: Any, batch: Any) -> Any:
            if len(batch.examples) > rows and model.training:
                raise out_of_memory()
            return real(task, model, batch)

        monkeypatch.setattr(type(training.task), "loss", loss)

    return limit


def test_memory_errors_are_told_from_others() -> None:
    assert is_memory_error(out_of_memory())
    assert is_memory_error(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"))
    assert is_memory_error(MemoryError())
    assert not is_memory_error(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_the_fewest_parts_that_go_through_are_found(
    make: Make, at_most: Callable[[Training, int], None]
) -> None:
    training = make(max_steps=3, batch_tokens="auto")
    training.model.train()
    n_rows = max(len(batch) for batch in training.order.epoch(0))
    assert find_micro_batches(training) == 1
    at_most(training, 3)
    parts = find_micro_batches(training)
    assert -(-n_rows // parts) <= 3 < -(-n_rows // (parts // 2))
    assert all(parameter.grad is None for parameter in training.model.parameters())
    at_most(training, 1)
    assert find_micro_batches(training) >= n_rows
    at_most(training, 0)
    with pytest.raises(RunError, match="not even one row of the largest batch fits into memory"):
        find_micro_batches(training)


def test_little_memory_asks_for_more_parts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    training = make(max_steps=3, batch_tokens="auto")
    largest = max(training.order.epoch(0), key=len)
    whole = micro_batches._saved_for_backward(training, largest)
    parts = []
    for share in (2.0, 0.6, 0.2):
        room = (micro_batches._gradients_and_moments(training) + share * whole) / micro_batches.SHARE
        monkeypatch.setattr(micro_batches, "_free_memory", lambda room=room: room)
        parts.append(find_micro_batches(training))
    assert parts[0] == 1 < parts[1] < parts[2]


def test_what_is_saved_for_backward_grows_with_the_rows(make: Make) -> None:
    training = make(max_steps=1, batch_tokens="auto")
    largest = max(training.order.epoch(0), key=len)
    half, whole = (micro_batches._saved_for_backward(training, largest[:n]) for n in (5, 10))
    assert 1.6 < whole / half < 2.4


def test_the_result_is_that_of_the_whole_batch_and_the_choice_is_stored(
    make: Make, at_most: Callable[[Training, int], None]
) -> None:
    plan = {"max_steps": 8, "eval_every": 4, "dropout": 0.0}
    whole = make("whole", batch_tokens=4096, **plan)
    expected = [event.loss for event in run(whole) if isinstance(event, Step)]
    training = make("split", batch_tokens="auto", **plan)
    at_most(training, 4)
    events = list(run(training))
    parts = next(event.parts for event in events if isinstance(event, Split))
    assert parts > 1
    losses = [event.loss for event in events if isinstance(event, Step)]
    assert losses == pytest.approx(expected, rel=1e-5)
    resumed = make("split", batch_tokens="auto", **plan)
    resumed.resume()
    assert resumed.n_micro_batches == parts


def test_a_batch_that_does_not_fit_later_is_split_then(
    make: Make, at_most: Callable[[Training, int], None]
) -> None:
    plan = {"max_steps": 6, "eval_every": 100, "dropout": 0.0}
    expected = [
        event.loss for event in run(make("whole", batch_tokens=4096, **plan)) if isinstance(event, Step)
    ]
    training = make("split", batch_tokens="auto", **plan)
    said = []
    for event in run(training):
        said.append(event)
        if isinstance(event, Step) and event.step == 3:
            at_most(training, 5)
    assert [event.loss for event in said if isinstance(event, Step)] == pytest.approx(expected, rel=1e-5)
    splits = [event for event in said if isinstance(event, Split)]
    assert splits[0] == Split(0, 1)
    assert [event.step for event in splits[1:]] == [3] * (len(splits) - 1) != []
    assert isinstance(said[-1], Finished)


def test_without_auto_it_is_said_what_to_do(make: Make, at_most: Callable[[Training, int], None]) -> None:
    training = make(max_steps=3, accumulate=2)
    at_most(training, 1)
    with pytest.raises(RunError, match=r'with 2 micro-batches .*batch_tokens = "auto", or .*accumulate = 4'):
        list(run(training))
