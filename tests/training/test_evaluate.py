"""Evaluation: what the numbers mean, and that batching and training mode do not matter to them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sacrebleu import corpus_bleu

from regard.decode import beam, greedy, in_order
from regard.tasks.task import evaluating
from regard.training.evaluate import evaluate
from regard.training.state import Training

CPU = torch.device("cpu")


@pytest.fixture
def training(make: Callable[..., Training]) -> Training:
    return make(max_steps=1, dropout=0.5)


def test_the_loss_is_the_mean_over_all_tokens_not_smoothed(training: Training) -> None:
    task, model = training.task, training.model
    metrics, _ = evaluate(task, model, training.valid, CPU, thorough=False)
    total, count = 0.0, 0
    model.eval()
    with torch.no_grad():
        for example in training.valid:
            one = task.collate([example])
            logits_NV = model(one.inputs, one.target_BT)
            total += torch.nn.functional.cross_entropy(logits_NV, one.labels_BT[0], reduction="sum").item()
            count += one.labels_BT.numel()
    assert metrics["loss"] == pytest.approx(total / count, rel=1e-5)


def test_the_scores_are_those_of_the_predictions(training: Training) -> None:
    task, model = training.task, training.model
    metrics, tally = evaluate(task, model, training.valid, CPU, thorough=True)
    with evaluating(model):
        found = [in_order(task.predict(model, task.collate([example])))[0].text for example in training.valid]
    references = [example.row.cells["target"] for example in training.valid]
    assert metrics["bleu"] == pytest.approx(corpus_bleu(found, [references]).score)
    assert (tally.hypotheses, tally.references) == (found, references), "in the order of the examples"
    assert "tok:13a" in tally.signatures()["bleu"]
    assert list(metrics) == ["loss", "bleu", "chrf"]


@pytest.mark.parametrize("batch_tokens", [1, 7, 100_000])
def test_batches_do_not_matter(training: Training, batch_tokens: int) -> None:
    task, model = training.task, training.model
    expected, _ = evaluate(task, model, training.valid, CPU, thorough=False)
    metrics, _ = evaluate(task, model, training.valid, CPU, thorough=False, batch_tokens=batch_tokens)
    assert metrics == pytest.approx(expected, rel=1e-4)


def test_thorough_searches_as_the_recipe_says_and_otherwise_greedily(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[str] = []

    def noted(name: str, search: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **options: (used.append(name), search(*args, **options))[1]

    for name, search in (("beam", beam), ("greedy", greedy)):
        monkeypatch.setattr(f"regard.tasks.writer.{name}", noted(name, search))
    for thorough in (False, True):
        evaluate(training.task, training.model, training.valid, CPU, thorough=thorough)
    assert used == ["greedy", "beam"]


def test_says_how_far_it_is(training: Training) -> None:
    done: list[int] = []
    evaluate(
        training.task, training.model, training.valid, CPU, thorough=False, batch_tokens=5, tick=done.append
    )
    assert len(done) > 2
    assert sum(done) == len(training.valid)


def test_leaves_the_model_as_it_was(training: Training) -> None:
    model = training.model.train()
    with evaluating(model):
        assert not model.training
        assert not torch.is_grad_enabled()
    assert model.training
    assert torch.is_grad_enabled()
    with pytest.raises(KeyError, match="x"), evaluating(model):
        raise KeyError("x")
    assert model.training
    with evaluating(model.eval()):
        pass
    assert not model.training
