"""The loop: the same weights however a batch is split and wherever a run was interrupted; how it ends."""

from collections.abc import Callable, Iterable, Iterator
from itertools import count, repeat
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from regard.data.batching import START
from regard.training import checkpoint
from regard.training.events import Evaluated, Event, Finished, Saved, Scoring, Step
from regard.training.loop import run, update
from regard.training.state import RankBatch, Training
from states import state

Make = Callable[..., Training]


def weights(training: Training) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in training.model.state_dict().items()}


def equal(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def steps(events: Iterable[Event]) -> list[Step]:
    return [event for event in events if isinstance(event, Step)]


def finished(events: Iterable[Event]) -> Finished:
    *_, last = events
    assert isinstance(last, Finished)
    return last


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Validations give these scores, one after another, and cost nothing."""

    def script(*values: float, losses: Iterable[float] = repeat(0.0)) -> None:
        left = zip(values, losses, strict=False)
        tally = SimpleNamespace(signatures=dict)

        def scored(*_: object, **__: object) -> tuple[dict[str, float], SimpleNamespace]:
            bleu, loss = next(left)
            return {"loss": loss, "bleu": bleu}, tally

        monkeypatch.setattr("regard.training.state.evaluate", scored)

    return script


@pytest.mark.parametrize("accumulate", [2, 3, 99])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_parts_of_a_batch_make_the_gradient_of_the_whole(
    make: Make, accumulate: int, dtype: torch.dtype, tolerance: float
) -> None:
    batch = [2, 3, 5, 7, 11, 13, 17]
    results = []
    for parts in (1, accumulate):
        training = make(dropout=0.0, max_steps=1, accumulate=parts, clip_norm=0.0)
        training.model.to(dtype)
        shown, norm, counts, _ = update(training, training.rank_batch(batch), step=1, lr=0.0)
        gradients = [parameter.grad for parameter in training.model.parameters()]
        results.append((torch.tensor([shown, norm, counts["tokens"]], dtype=dtype), gradients))
    torch.testing.assert_close(*(numbers for numbers, _ in results), rtol=10 * tolerance, atol=tolerance)
    torch.testing.assert_close(*(gradients for _, gradients in results), rtol=10 * tolerance, atol=tolerance)


def test_the_loss_shown_is_per_token_and_not_smoothed(make: Make) -> None:
    training, batch = make(dropout=0.0, max_steps=1), [2, 3, 5]
    collated = training.task.collate([training.train[i] for i in batch])
    logits_NV = training.model(collated.inputs, collated.target_BT)
    expected = torch.nn.functional.cross_entropy(logits_NV, collated.labels_BT.flatten(), ignore_index=0)
    shown, _, counts, _ = update(training, training.rank_batch(batch), step=1, lr=0.0)
    assert shown == pytest.approx(expected.item(), rel=1e-5)
    assert counts == {"tokens": sum(len(training.train[i].arrays["target"]) - 1 for i in batch)}


def test_gradients_are_clipped_to_the_norm_and_the_rate_is_used(make: Make) -> None:
    training = make(max_steps=1, clip_norm=0.01, optimizer="adamw")
    before = weights(training)
    _, norm, *_ = update(training, training.rank_batch([0, 1, 2]), step=1, lr=0.0)
    assert norm > 0.01, "the norm is reported as it was"
    clipped = torch.cat([parameter.grad.flatten() for parameter in training.model.parameters()])
    assert clipped.norm().item() == pytest.approx(0.01, rel=1e-3)
    assert equal(weights(training), before)
    update(training, training.rank_batch([0, 1, 2]), step=2, lr=0.1)
    assert not equal(weights(training), before)


def test_dropout_is_drawn_anew_at_every_step_and_alike_at_the_same(make: Make) -> None:
    """At a learning rate of 0, so that nothing else changes."""
    training = make()
    batch = training.rank_batch(range(7))
    one, again, two = (update(training, batch, step, lr=0.0)[0] for step in (1, 1, 2))
    assert one == again != two
    other = make(seed=2)
    assert update(other, other.rank_batch(range(7)), 1, lr=0.0)[0] != one


def test_the_same_seed_gives_the_same_bits(make: Make) -> None:
    runs = []
    for folder in "ab":
        training = make(folder, max_steps=5)
        events = list(run(training))
        runs.append((weights(training), [(s.loss, s.lr, s.grad_norm) for s in steps(events)]))
    assert equal(runs[0][0], runs[1][0])
    assert runs[0][1] == runs[1][1]
    other = make("c", max_steps=5, seed=2)
    assert [(s.loss, s.lr, s.grad_norm) for s in steps(run(other))] != runs[0][1]


def test_every_example_is_seen_once_an_epoch_in_the_order_of_the_seed(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = make(max_epochs=3, eval_every=1000)
    seen: list[list[int]] = []

    def noting(
        training: Training, load: RankBatch, step: int, lr: float
    ) -> tuple[float, float, dict[str, int], bool]:
        seen.append(load.indices)
        return 0.0, 0.0, {"tokens": 1}, True

    monkeypatch.setattr("regard.training.loop.update", noting)
    events = list(run(training))
    expected = [list(training.order.epoch(epoch)) for epoch in range(3)]
    assert len(expected[0]) > 3
    assert seen == [batch for epoch in expected for batch in epoch]
    assert [step.step for step in steps(events)] == list(range(1, len(seen) + 1))
    assert [step.epoch for step in steps(events)] == [n for n in range(3) for _ in expected[n]]
    assert finished(events).reason == "max_epochs = 3"


def interrupted_after(training: Training, step: int) -> list[Event]:
    """What was said before the power went off, just after a checkpoint."""
    said: list[Event] = []
    for event in run(training):
        said.append(event)
        if isinstance(event, Saved) and event.step == step:
            return said
    raise AssertionError(f"no checkpoint at step {step}")


@pytest.mark.parametrize("stop", [3, 6, 9])
def test_an_interrupted_run_ends_with_the_same_bits(make: Make, stop: int) -> None:
    plan = {"max_steps": 11, "eval_every": 3, "schedule": "cosine", "average": 2}
    whole = make("whole", **plan)
    expected = list(run(whole))

    begun = make("resumed", **plan)
    before = interrupted_after(begun, stop)
    resumed = make("resumed", model_seed=99, **plan)
    resumed.resume()
    assert resumed.progress.step == stop
    assert resumed.progress.place > START
    after = list(run(resumed))

    def facts(events: Iterable[Event]) -> list[Any]:
        return [
            (event.step, event.epoch, event.loss, event.lr, event.grad_norm, event.tokens)
            if isinstance(event, Step)
            else (event.step, event.metrics, event.best)
            for event in events
            if isinstance(event, Step | Evaluated)
        ]

    assert facts([*before, *after]) == facts(expected)
    assert equal(weights(resumed), weights(whole))
    assert finished(after).chosen == finished(expected).chosen
    for name in ("model.safetensors", "optimizer.safetensors"):
        left, right = (
            load_file(checkpoint.folder_of(training.checkpoints, 11) / name) for training in (whole, resumed)
        )
        assert equal(left, right)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_interrupted_thrice_an_epoch_the_same_examples_come_in_the_same_order(
    make: Make, workers: int, accumulate: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Epochs 1 to 3, a checkpoint after every step, power cuts at three of them in each epoch."""
    seen: list[tuple[int, list[int]]] = []
    real = update

    def noting(training: Training, load: RankBatch, step: int, lr: float) -> Any:
        seen.append((step, list(load.indices)))
        return real(training, load, step, lr)

    monkeypatch.setattr("regard.training.loop.update", noting)
    plan = {"max_epochs": 3, "save_every": 1, "eval_every": 1000, "accumulate": accumulate}
    whole = make("whole", workers=0, **plan)
    list(run(whole))
    expected = seen.copy()
    epochs = [len(list(whole.order.epoch(epoch))) for epoch in range(3)]
    firsts = [sum(epochs[:n]) for n in range(3)]
    cuts = [first + at for first, n in zip(firsts, epochs, strict=True) for at in (1, n // 2, n - 1)]
    seen.clear()
    for cut in sorted(set(cuts)):
        training = make("cut", model_seed=cut, workers=workers, **plan)
        training.resume()
        interrupted_after(training, cut)
        training.loader.close()
    last = make("cut", model_seed=99, workers=workers, **plan)
    last.resume()
    list(run(last))
    assert seen == expected
    assert all(map(torch.equal, state(whole), state(last)))


def test_a_run_that_had_ended_does_not_go_on(make: Make) -> None:
    """Killed between the last checkpoint and the model folder: only the end is done again."""
    first = make(max_steps=3)
    done = finished(run(first))
    for plan in ({"max_steps": 3}, {"max_steps": 2}):
        again = make(model_seed=99, **plan)
        again.resume()
        events = list(run(again))
        assert [type(event) for event in events] == [Scoring, Finished]
        assert equal(weights(again), weights(first))
        assert finished(events).chosen == done.chosen


def test_a_run_that_had_lost_patience_does_not_go_on(make: Make, scores: Callable[..., None]) -> None:
    scores(5, 4, 3, 5, 5)
    finished(run(make(patience=2, eval_every=1)))
    again = make(model_seed=99, patience=2, eval_every=1)
    again.resume()
    assert [type(event) for event in run(again)] == [Scoring, Finished]


def test_resuming_counts_time_on_and_restores_the_threads(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    interrupted_after(make(max_steps=5, eval_every=1), 2)
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    again = make(max_steps=5, eval_every=1)
    again.resume()
    assert asked == [7]
    spent = again.progress.seconds
    assert spent > 0
    assert steps(run(again))[0].seconds > spent


def test_the_best_checkpoint_is_kept(make: Make, scores: Callable[..., None]) -> None:
    scores(1, 5, 3, 5, 7)
    training = make(max_steps=4, eval_every=1)
    said: list[Event] = []
    for event in run(training):
        said.append(event)
        if isinstance(event, Evaluated) and event.step == 2:
            at_best = weights(training)
    last = finished(said)
    assert [event.best for event in said if isinstance(event, Evaluated)] == [True, True, False, False]
    assert (last.best_step, last.chosen, last.metrics["bleu"]) == (2, "best checkpoint (step 2)", 7)
    assert equal(weights(training), at_best)


def test_of_equal_scores_that_of_the_lowest_loss_is_kept(make: Make, scores: Callable[..., None]) -> None:
    """It is no better, so that patience is not renewed; a run that goes on remembers it."""
    scores(5, 5, 5, 5, 5, losses=(0.9, 0.4, 0.5, 0.3, 0.3))
    training = make(max_steps=9, eval_every=1, patience=3)
    interrupted_after(training, 2)
    training = make(max_steps=9, eval_every=1, patience=3)
    training.resume()
    last = finished(list(run(training)))
    assert (last.step, last.best_step) == (4, 4)


@pytest.mark.parametrize(("averaged", "wins"), [(9.0, True), (5.0, True), (4.96, True), (4.94, False)])
def test_the_average_of_the_last_is_kept_unless_the_best_is_clearly_better(
    make: Make, scores: Callable[..., None], averaged: float, wins: bool
) -> None:
    scores(1, 5, 3, 4, 5, averaged)
    training = make(max_steps=4, eval_every=1, average=3)
    history: dict[int, dict[str, Tensor]] = {}
    for event in run(training):
        if isinstance(event, Saved):
            history[event.step] = weights(training)
        last = event
    assert isinstance(last, Finished)
    if not wins:
        assert last.chosen == "best checkpoint (step 2)"
        assert equal(weights(training), history[2])
        return
    assert last.chosen == "average of the last 3 checkpoints"
    assert last.metrics["bleu"] == averaged
    for name, tensor in weights(training).items():
        by_hand = (history[2][name].double() + history[3][name].double() + history[4][name].double()) / 3
        torch.testing.assert_close(tensor.double(), by_hand, rtol=1e-6, atol=1e-8)


def test_stops_when_nothing_gets_better(make: Make, scores: Callable[..., None]) -> None:
    scores(1, 5, 5, 4, 6, 6, 5, 4, 6)
    last = finished(run(make(patience=3, eval_every=1)))
    assert (last.step, last.best_step) == (8, 5)
    assert last.reason == "no better score in 3 validations"


def test_stops_after_steps_and_validates_once_more(make: Make, scores: Callable[..., None]) -> None:
    scores(1, 2, 3, 3)
    events = list(run(make(max_steps=7, eval_every=3)))
    assert finished(events).reason == "max_steps = 7"
    assert [event.step for event in events if isinstance(event, Evaluated)] == [3, 6, 7]
    assert steps(events)[-1].progress == 1.0


def test_a_validation_at_the_limit_happens_once(make: Make, scores: Callable[..., None]) -> None:
    scores(1, 2, 2)
    events = list(run(make(max_steps=6, eval_every=3)))
    assert [event.step for event in events if isinstance(event, Evaluated)] == [3, 6]


def test_stops_when_time_is_up(
    make: Make, scores: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    scores(*range(100))
    seconds = count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(seconds)))
    for module in ("loop", "state", "checkpointing"):
        monkeypatch.setattr(f"regard.training.{module}.time", clock)
    events = list(run(make(max_minutes=0.5, eval_every=5)))
    last = finished(events)
    assert last.reason == "max_minutes = 0.5"
    assert 3 < last.step < 31
    assert all(one.progress >= min(1.0, one.seconds / 30) for one in steps(events))
    assert steps(events)[-2].seconds < 32
    assert last.seconds >= 30


def test_validates_once_an_epoch_unless_told(make: Make, scores: Callable[..., None]) -> None:
    scores(1, 2, 2)
    training = make(max_epochs=2)
    per_epoch = [len(list(training.order.epoch(epoch))) for epoch in range(2)]
    events = list(run(training))
    evaluated = [event.step for event in events if isinstance(event, Evaluated)]
    assert evaluated == [per_epoch[0], sum(per_epoch)]
    assert training.total_steps == 2 * per_epoch[0]


def test_keeps_the_last_checkpoints_and_the_best(make: Make, scores: Callable[..., None]) -> None:
    scores(1, 9, 1, 1, 1, 0, 0)
    training = make(max_steps=5, eval_every=1, average=2)
    kept = [
        checkpoint.saved_steps(training.checkpoints) for event in run(training) if isinstance(event, Saved)
    ]
    assert kept == [[0], [0, 1], [1, 2], [2, 3], [2, 3, 4], [2, 4, 5]]


def test_the_callers_loop_may_stop_at_any_event(make: Make) -> None:
    """Nothing is written behind the back of whoever has left."""
    training = make(max_steps=5, eval_every=1)
    events: Iterator[Event] = run(training)
    assert isinstance(next(events), Saved)
    assert isinstance(next(events), Step)
    events.close()
    assert [path.name for path in training.checkpoints.iterdir()] == ["step-00000000"]


def test_leftovers_of_a_killed_save_are_removed(make: Make) -> None:
    training = make(max_steps=5, eval_every=1)
    interrupted_after(training, 2)
    (training.checkpoints / ".step-00000007.partial").mkdir()
    (training.checkpoints / ".step-00000001.gone").mkdir()
    again = make(max_steps=5, eval_every=1)
    assert again.resume() == []
    assert again.progress.step == 2
    assert not list(training.checkpoints.glob(".*"))
    assert finished(run(again)).step == 5
