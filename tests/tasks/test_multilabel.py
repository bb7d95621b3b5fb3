"""Several labels a text: cells, losses, answers, scores, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from regard.data.cache import Examples
from regard.decode import in_order
from regard.errors import CheckpointError, DataError, RecipeError
from regard.fields.labels import Labels
from regard.files.row import Row
from regard.models import Widths
from regard.tasks import Multilabel, MultilabelConfig
from regard.tasks.multilabel import LabelsTally
from regard.tasks.task import evaluating
from tiny import classifier, stirred

LINES = [
    ("a warm funny film", "joy, love"),
    ("a dull film", "anger"),
    ("funny and sad", "joy,sorrow,joy"),
    ("so so", ""),
    ("a sad dull end", "sorrow"),
]


def row(text: str, label: str | None = None, line: int = 1) -> Row:
    return Row({"text": text} | ({} if label is None else {"label": label}), "films.csv", line)


def fitted(lines: list[tuple[str, str]] = LINES, **changes: Any) -> Multilabel:
    tokenizer = {"kind": "word", "vocab_size": 60, "min_frequency": 1}
    config = MultilabelConfig.model_validate({"tokenizer": tokenizer, "max_length": 6} | changes)
    return Multilabel.fit(config, [row(*line, number) for number, line in enumerate(lines, 2)])


@pytest.fixture
def task() -> Multilabel:
    return fitted()


@pytest.mark.parametrize(
    ("cell", "separator", "found"),
    [
        ("joy, love", ",", ("joy", "love")),
        ("joy|love|joy", "|", ("joy", "love")),
        ("", ",", ()),
        (" , ,", ",", ()),
        ("joy, love", "|", ("joy, love",)),
        ("a :: b", "::", ("a", "b")),
    ],
)
def test_cells(cell: str, separator: str, found: tuple[str, ...]) -> None:
    assert Labels(separator).split(cell) == found


def test_a_batch_says_yes_or_no_to_each_label(task: Multilabel) -> None:
    assert task.labels == ("anger", "joy", "love", "sorrow")
    assert task.widths == Widths({"vocab": len(task.tokenizer)}, {"classes": 4})
    batch = task.collate(task.encode([row(*line) for line in LINES]))
    assert batch.labels_B.tolist() == [[0, 1, 1, 0], [1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert batch.counts == {"examples": 5}


def test_examples_come_back_from_arrays(task: Multilabel) -> None:
    rows = [row(*line, number) for number, line in enumerate(LINES)]
    kept = Examples.of(task, rows)
    for example, again in zip(task.encode(rows), (kept[i] for i in range(5)), strict=True):
        assert again.arrays["ids"].tolist() == example.arrays["ids"].tolist()
        assert again.arrays["labels"].tolist() == example.arrays["labels"].tolist()


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_is_a_sum_over_texts_and_labels(smoothing: float) -> None:
    task = fitted(label_smoothing=smoothing)
    model = stirred(classifier("rnn").build(task.widths))
    batch = task.collate(task.encode([row(*line) for line in LINES]))
    loss = task.loss(model, batch)
    likely_BC, truth_BC = model(batch.inputs).sigmoid(), batch.labels_B
    wanted_BC = truth_BC * (1 - smoothing) + (1 - truth_BC) * 0 + smoothing / 2
    learnt = -(wanted_BC * likely_BC.log() + (1 - wanted_BC) * (1 - likely_BC).log()).sum()
    plain = -(truth_BC * likely_BC.log() + (1 - truth_BC) * (1 - likely_BC).log()).sum()
    torch.testing.assert_close(loss.parts["examples"].sum, learnt, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(loss.shown["examples"], plain.detach(), rtol=1e-4, atol=1e-4)
    assert not loss.shown["examples"].requires_grad


def test_balance_makes_yes_count_as_much_as_no() -> None:
    task = fitted(class_weights="balanced")
    assert task.weights_C is not None
    assert task.weights_C.tolist() == pytest.approx([4 / 1, 3 / 2, 4 / 1, 3 / 2])
    model = stirred(classifier("words").build(task.widths))
    batch = task.collate(task.encode([row(*line) for line in LINES]))
    logits_BC = model(batch.inputs)
    weight_BC = torch.where(batch.labels_B > 0, task.weights_C, torch.ones(4))
    costs_BC = F.binary_cross_entropy_with_logits(logits_BC, batch.labels_B, reduction="none")
    torch.testing.assert_close(task.loss(model, batch).parts["examples"].sum, (weight_BC * costs_BC).sum())
    torch.testing.assert_close(task.loss(model, batch).shown["examples"], costs_BC.detach().sum())


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
def test_an_answer_is_every_label_that_is_likely_enough(task: Multilabel, threshold: float) -> None:
    model = stirred(classifier("transformer").build(task.widths))
    batch = task.collate(task.encode([row(text) for text, _ in LINES]))
    asked = task.with_settings(threshold=str(threshold))
    with evaluating(model):
        likely_BC = model(batch.inputs).sigmoid()
        answers = in_order(asked.predict(model, batch))
    for answer, likely in zip(answers, likely_BC.tolist(), strict=True):
        given = tuple(label for label, p in zip(task.labels, likely, strict=True) if p >= threshold)
        assert answer.labels == given
        assert answer.text == ",".join(given)
        assert list(answer.probabilities.values()) == pytest.approx(likely)
        together = 1.0
        for p in likely:
            together *= p if p >= threshold else 1 - p
        assert answer.probability == pytest.approx(together, rel=1e-4)
        assert set(answer.to_json()) == {"text", "labels", "probability", "probabilities"}


def test_a_replay_tells_the_answer_as_a_whole(task: Multilabel) -> None:
    model = stirred(classifier("rnn").build(task.widths))
    (example,) = task.encode([row("a warm funny film")])
    with evaluating(model):
        (answer,) = in_order(task.predict(model, task.collate([example])))
        told_1T = task.replay(model, task.force(example, answer))
        left = task.leave_out(task.force(example, answer), task.axis(example), range(4))
        left_B1 = task.replay(model, left)
        (shorter,) = task.encode([row("a warm film")])
        alone_11 = task.replay(model, task.force(shorter, answer))
    assert told_1T.exp().item() == pytest.approx(answer.probability, rel=1e-4)
    assert left_B1.shape == (4, 1)
    torch.testing.assert_close(left_B1[2:3], alone_11)
    assert task.axes(example, answer).by_name["labels"].labels == (answer.text or "(none)",)


def test_tallies_add_up_and_score() -> None:
    tally = LabelsTally([("a", "b"), ()], [("a",), ()]) + LabelsTally([("b",)], [("b", "c")])
    scores = tally.metrics()
    assert scores["accuracy"] == pytest.approx(100 / 3)
    assert scores["micro_f1"] == pytest.approx(100 * 2 * 2 / (3 + 3))
    assert scores["macro_f1"] == pytest.approx(100 * (1 + 2 / 3 + 0) / 3)


def test_comes_back_from_disk(tmp_path: Path) -> None:
    task = fitted(class_weights={"love": 3.0})
    task.save(tmp_path)
    again = Multilabel.load(task.config, tmp_path)
    assert again.labels == task.labels
    assert again.weights_C is not None
    assert again.weights_C.tolist() == [1, 1, 3, 1]
    (tmp_path / "label_weights.json").write_text("[1, 2, 0, 1]")
    with pytest.raises(
        CheckpointError, match=r"label_weights\.json: should hold a number above 0 for each of 4"
    ):
        Multilabel.load(task.config, tmp_path)


def test_faults_are_said(task: Multilabel) -> None:
    with pytest.raises(DataError, match=r"films\.csv:7: label 'lvoe' does not occur.*; did you mean love\?"):
        task.encode([row("a film", "joy,lvoe", 7)])
    with pytest.raises(DataError, match=r"only 1 different labels; .* task\.separator, '\|'"):
        fitted([("a film", "joy"), ("another", "joy")], separator="|")
    with pytest.raises(DataError, match=r"films\.csv:2: more than 10,000 different labels .*task\.separator"):
        fitted([("a film", ",".join(map(str, range(10_001))))])
    with pytest.raises(DataError, match=r"films\.csv:2: a label of 1,001 characters looks like text"):
        fitted([("a film", "joy," + "L" * 1001)])
    with pytest.raises(RecipeError, match=r"task\.class_weights\.lvoe: no such label .*did you mean love\?"):
        fitted(class_weights={"lvoe": 2.0})
    with pytest.raises(RecipeError, match="threshold: '2' should be a number above 0 and below 1"):
        task.with_settings(threshold="2")
    for huge, said in ((10**400, "10{58}…"), (10**5000, "a number of thousands of digits")):
        with pytest.raises(RecipeError, match=f"threshold: {said} should be"):
            task.with_settings(threshold=huge)
    with pytest.raises(RecipeError, match="beam: a classifier of several labels has one setting, threshold"):
        task.with_settings(beam=3)


def test_the_score_says_how_it_is_computed() -> None:
    assert LabelsTally([("joy",)], [("joy",)]).signatures() == {"accuracy": "texts with exactly their labels"}
