"""Classification: labels, losses, predictions and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from regard.decode import in_order
from regard.errors import CheckpointError, DataError, RecipeError
from regard.files.row import Row
from regard.models import Widths
from regard.tasks import Classify, ClassifyConfig
from regard.tasks.classify import LabelTally
from regard.tasks.task import evaluating
from regard.text.tokenizer import EOS, PAD
from tiny import classifier, stirred

LINES = [
    ("a warm funny film", "good"),
    ("a dull film", "bad"),
    ("funny and warm", "good"),
    ("so so", "middling"),
]


def row(text: str, label: str | None = None, line: int = 1) -> Row:
    return Row({"text": text} | ({} if label is None else {"label": label}), "films.csv", line)


def fitted(lines: list[tuple[str, str]] = LINES, **changes: Any) -> Classify:
    tokenizer = {"kind": "word", "vocab_size": 60, "min_frequency": 1}
    config = ClassifyConfig.model_validate({"tokenizer": tokenizer, "max_length": 6} | changes)
    return Classify.fit(config, [row(*line, number) for number, line in enumerate(lines, 2)])


@pytest.fixture
def task() -> Classify:
    return fitted()


def test_labels_are_sorted_so_that_row_order_does_not_matter(task: Classify) -> None:
    assert task.labels == ("bad", "good", "middling")
    assert fitted(LINES[::-1]).labels == task.labels
    assert task.widths == Widths({"vocab": len(task.tokenizer)}, {"classes": 3})


def test_an_example_ends_and_knows_its_label(task: Classify) -> None:
    known, unknown = task.encode([row("a warm film", "good"), row("a warm film")])
    assert known.arrays["ids"].tolist() == [*task.tokenizer.encode("a warm film").ids, EOS]
    assert [example.arrays["label"].tolist() for example in (known, unknown)] == [[1], [-1]]
    assert task.size(known) == (4,)


def test_long_texts_are_cut_and_empty_ones_not_learnt_from(task: Classify) -> None:
    long, empty = task.encode([row("film " * 50, "good"), row("", "good")])
    assert len(long.arrays["ids"]) == 7
    assert task.unusable(long) is None
    assert task.unusable(empty)
    assert task.size(empty) == (1,)


def test_a_batch_is_padded(task: Classify) -> None:
    batch = task.collate(task.encode([row("a", "bad"), row("a warm funny film", "good")]))
    assert batch.inputs["ids"].shape == (2, 5)
    assert batch.inputs["lengths"].tolist() == [2, 5]
    assert batch.inputs["ids"][0, 2:].tolist() == [PAD] * 3
    assert batch.labels_B.tolist() == [0, 1]
    assert batch.counts == {"examples": 2}


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_is_a_sum_over_texts(smoothing: float) -> None:
    task = fitted(label_smoothing=smoothing)
    model = stirred(classifier("rnn").build(task.widths))
    batch = task.collate(task.encode([row(*line) for line in LINES]))
    loss = task.loss(model, batch)
    logits_BC = model(batch.inputs)
    expected = F.cross_entropy(logits_BC, batch.labels_B, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(loss.parts["examples"].sum, expected)
    torch.testing.assert_close(
        loss.shown["examples"], F.cross_entropy(logits_BC, batch.labels_B, reduction="sum")
    )
    assert not loss.shown["examples"].requires_grad


def test_a_prediction_is_the_likeliest_label_with_all_probabilities(task: Classify) -> None:
    model = stirred(classifier("transformer").build(task.widths))
    batch = task.collate(task.encode([row(text) for text, _ in LINES]))
    with evaluating(model):
        probabilities_BC = model(batch.inputs).softmax(-1)
        predictions = in_order(task.predict(model, batch))
    for found, expected in zip(predictions, probabilities_BC.tolist(), strict=True):
        assert list(found.probabilities) == ["bad", "good", "middling"]
        assert list(found.probabilities.values()) == pytest.approx(expected)
        assert found.probability == max(found.probabilities.values()) == found.probabilities[found.text]
        assert task.labels[found.index] == found.text
        assert set(found.to_json()) == {"text", "probability", "probabilities"}


def test_a_replay_tells_what_was_predicted(task: Classify) -> None:
    model = stirred(classifier("rnn").build(task.widths))
    (example,) = task.encode([row("a warm funny film")])
    with evaluating(model):
        (prediction,) = in_order(task.predict(model, task.collate([example])))
        told_1T = task.replay(model, task.force(example, prediction))
    assert told_1T.shape == (1, 1)
    assert told_1T.exp().item() == pytest.approx(prediction.probability, rel=1e-5)
    batch = task.leave_out(task.force(example, prediction), task.axis(example), range(4))
    a, _, funny, film, end = example.arrays["ids"].tolist()
    assert batch.inputs["ids"][1].tolist() == [a, funny, film, end, PAD]
    assert batch.inputs["ids"].shape == (4, 5)
    assert batch.inputs["lengths"].tolist() == [4] * 4
    assert batch.labels_B.tolist() == [prediction.index] * 4


def test_tallies_add_up_and_score() -> None:
    tally = LabelTally(["a", "a"], ["a", "b"]) + LabelTally(["c", "b"], ["c", "b"])
    scores = tally.metrics()
    assert scores["accuracy"] == 75
    precision_recall = {"a": (1 / 2, 1 / 1), "b": (1 / 1, 1 / 2), "c": (1.0, 1.0)}
    by_hand = sum(2 * p * r / (p + r) for p, r in precision_recall.values()) / 3
    assert scores["macro_f1"] == pytest.approx(100 * by_hand)
    assert LabelTally(["a"], ["b"]).metrics() == {"accuracy": 0, "macro_f1": 0}


def test_comes_back_from_disk(task: Classify, tmp_path: Path) -> None:
    task.save(tmp_path)
    loaded = Classify.load(task.config, tmp_path)
    assert loaded.labels == task.labels
    assert loaded.widths == task.widths
    before, after = (one.encode([row("a warm film")])[0].arrays["ids"] for one in (task, loaded))
    assert before.tolist() == after.tolist()


@pytest.mark.parametrize("content", ["", "{}", '["only"]', "[1, 2]", "null"])
def test_damaged_labels_are_said(task: Classify, tmp_path: Path, content: str) -> None:
    task.save(tmp_path)
    (tmp_path / "labels.json").write_text(content)
    with pytest.raises(
        CheckpointError, match=r"labels\.json: (the labels cannot be read|should hold a list)"
    ):
        Classify.load(task.config, tmp_path)


def test_faults_of_the_data_are_said_with_their_place(task: Classify) -> None:
    with pytest.raises(DataError, match=r"films\.csv:7: label 'godo' does not occur.*; did you mean good\?"):
        task.encode([row("a film", "godo", 7)])
    with pytest.raises(DataError, match=r"films\.csv:3: the label is empty; give every training text one"):
        fitted([("a film", "good"), ("another", "")])
    with pytest.raises(DataError, match=r"films\.csv:7: the label is empty; give every text one"):
        task.encode([row("fine", "", 7)])
    with pytest.raises(DataError, match=r"films\.csv: only one label \('good'\) .* at least two"):
        fitted([("a film", "good"), ("another", "good")])
    with pytest.raises(DataError, match=r"more than 10,000 different labels look.*data\.columns\.label"):
        fitted([("a film", f"label {i}") for i in range(10_001)])
    with pytest.raises(DataError, match=r"films\.csv:3: a label of 900,000 characters looks like text"):
        fitted([("a film", "good"), ("another", "L" * 900_000)])
    with pytest.raises(DataError, match=r"films\.csv:7: label 'L{59}…' does not occur") as raised:
        task.encode([row("a film", "L" * 900_000, 7)])
    assert len(str(raised.value)) < 300


def test_a_classifier_does_not_search(task: Classify) -> None:
    with pytest.raises(RecipeError, match="beam: a classifier does not search"):
        task.with_settings(beam=3)


def test_class_weights(tmp_path: Path) -> None:
    """Balanced: each label's texts count as much together; the loss that is shown stays plain."""
    task = fitted(class_weights="balanced")
    assert task.weights_C is not None
    assert task.weights_C.tolist() == pytest.approx([4 / 3 / 1, 4 / 3 / 2, 4 / 3 / 1])
    model = stirred(classifier("rnn").build(task.widths))
    batch = task.collate(task.encode([row(*line) for line in LINES]))
    costs_B = F.cross_entropy(model(batch.inputs), batch.labels_B, reduction="none")
    loss = task.loss(model, batch)
    torch.testing.assert_close(loss.parts["examples"].sum, (task.weights_C[batch.labels_B] * costs_B).sum())
    torch.testing.assert_close(loss.shown["examples"], costs_B.detach().sum())
    task.save(tmp_path)
    again = Classify.load(task.config, tmp_path)
    torch.testing.assert_close(again.weights_C, task.weights_C)
    with pytest.raises(RecipeError, match=r"task\.class_weights\.godo: no such label.*did you mean good\?"):
        fitted(class_weights={"godo": 2.0})
