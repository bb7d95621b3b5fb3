"""Scores of single labels, judged by scikit-learn."""

import random

import numpy as np
from sklearn.metrics import precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer

from regard.metrics.classify import by_label


def test_every_label_is_scored_as_scikit_learn_scores_it() -> None:
    rng = random.Random(3)
    gold = [tuple(rng.sample("abcde", rng.randint(0, 3))) for _ in range(101)]
    predicted = [tuple(rng.sample("abcdf", rng.randint(0, 3))) for _ in range(101)]
    found = by_label(predicted, gold)
    names = sorted("abcdef")
    binary = MultiLabelBinarizer(classes=names)
    scored = precision_recall_fscore_support(
        binary.fit_transform(gold), binary.transform(predicted), zero_division=0
    )
    ours = [[found[name][part] for name in names] for part in ("precision", "recall", "f1")]
    np.testing.assert_allclose(np.array(ours) / 100, np.array(scored[:3]))
    assert [found[name]["n"] for name in names] == [float(n) for n in scored[3]]
    counts = [one["n"] for one in found.values()]
    assert counts == sorted(counts, reverse=True)
