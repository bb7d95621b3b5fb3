"""Baselines of pictures against scikit-learn used by hand."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid

from pictures import LABELS, bright, field, png
from regard.baselines import pixels
from regard.baselines.ngrams import NgramRegression
from regard.baselines.pixels import NearestMean, PixelRegression
from regard.fields.label import Label
from regard.fields.labels import Labels
from regard.files.row import Row
from regard.tasks import Classify, ClassifyConfig, Multilabel, MultilabelConfig

MADE, ASKED = bright(61, 1), bright(23, 2)


def rows(made: list[tuple[np.ndarray, str]]) -> list[Row]:
    return [Row({"image": png(one), "label": label}, "f", i) for i, (one, label) in enumerate(made)]


def task() -> Classify:
    return Classify(ClassifyConfig(fields={"image": {}}), {"image": field()}, Label(LABELS))  # type: ignore[dict-item]


def standard(made: list[tuple[np.ndarray, str]]) -> np.ndarray:
    learnt = np.stack([one.reshape(-1) for one, _ in MADE]).astype(float)
    return (np.stack([one.reshape(-1) for one, _ in made]) - learnt.mean(0)) / learnt.std(0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_answers_are_scikit_learns() -> None:
    labels = [label for _, label in MADE]
    examples = task().encode(rows(ASKED))
    for ours, theirs in (
        (PixelRegression, LogisticRegression(C=pixels.C, max_iter=pixels.STEPS)),
        (NearestMean, NearestCentroid()),
    ):
        expected = theirs.fit(standard(MADE), labels).predict(standard(ASKED)).tolist()
        assert list(ours.fit(task(), rows(MADE)).answers(examples)) == expected


def test_what_is_planted_is_found() -> None:
    examples = task().encode(rows(ASKED))
    for baseline in (PixelRegression, NearestMean):
        answers = baseline.fit(task(), rows(MADE)).answers(examples)
        assert task().tally(examples, answers).metrics()["accuracy"] > 90


def test_of_several_labels_each_is_decided_by_itself() -> None:
    config = MultilabelConfig(fields={"image": {}})  # type: ignore[dict-item]
    several = Multilabel(config, {"image": field()}, Labels(names=LABELS))
    examples = several.encode(rows(ASKED))
    answers = PixelRegression.fit(several, rows(MADE)).answers(examples)
    assert several.tally(examples, answers).metrics()["accuracy"] > 80


def test_they_suit_pictures_alone() -> None:
    several = Multilabel(MultilabelConfig(fields={"image": {}}), {"image": field()}, Labels(names=LABELS))  # type: ignore[dict-item]
    suited = {one: [each.suits(one) for each in one.baselines] for one in (task(), several)}
    assert [*suited.values()] == [
        [True, False, True, True, False, False],
        [True, False, True, False, False, False],
    ]
    assert NgramRegression in task().baselines


def test_large_pictures_are_made_small_and_many_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixels, "SIDE", 8)
    monkeypatch.setattr(pixels, "MOST", 20)
    fitted = PixelRegression.fit(task(), rows(MADE))
    assert fitted.pixels.learnt_NF.shape == (16, 8 * 8 * 3)
