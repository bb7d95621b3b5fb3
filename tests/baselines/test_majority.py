"""The commonest answer, against a count by hand; a task tallies plain answers as it tallies a model's."""

from collections.abc import Sequence

import pytest
import torch

from regard.baselines.majority import Majority
from regard.files.row import Row
from regard.models import ClassifierConfig
from regard.tasks import Classify, ClassifyConfig, Multilabel, MultilabelConfig
from regard.training.evaluate import evaluate


def rows(labels: Sequence[str]) -> list[Row]:
    return [Row({"text": f"w{n % 3} x", "label": label}, "f", n) for n, label in enumerate(labels, 1)]


def test_the_commonest_label_answers_everything() -> None:
    train, asked = rows("abbac"), rows("bbac")
    task = Classify.fit(ClassifyConfig(), train)
    examples = task.encode(asked)
    answers = Majority.fit(task, train).answers(examples)
    assert list(answers) == ["a"] * 4
    assert task.tally(examples, answers).metrics()["accuracy"] == 100 / 4


def test_of_several_labels_the_commonest_set() -> None:
    train = rows(["a,b", "b,a", "a,b", "a", "c"])
    task = Multilabel.fit(MultilabelConfig(), train)
    assert list(Majority.fit(task, train).answers(task.encode(train))) == [("a", "b")] * 5


@pytest.mark.parametrize("labels", ["abbac", "cbaabacc"])
def test_plain_answers_are_tallied_as_a_models(labels: str) -> None:
    train = rows(labels)
    task = Classify.fit(ClassifyConfig(), train)
    model = ClassifierConfig.model_validate({"encoder": {"kind": "words", "d_embed": 7}}).build(task.widths)
    examples = task.encode(train)
    _, tally = evaluate(task, model, examples, torch.device("cpu"), thorough=True)
    with torch.no_grad():
        answers = [answer.text for _, answer in task.predict(model.eval(), task.collate(examples))]
    assert task.tally(examples, answers) == tally
