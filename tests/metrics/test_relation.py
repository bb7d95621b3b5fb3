"""The score of SemEval-2010 task 8 against its published definition, worked out another way."""

import random
from fractions import Fraction

import numpy as np
import pytest

from regard.metrics.relation import RelationScores, relation

RELATIONS = ("Cause-Effect", "Component-Whole", "Product-Producer")
LABELS = [f"{name}({way})" for name in RELATIONS for way in ("e1,e2", "e2,e1")] + ["Other"]


def scored(predicted: list[str], gold: list[str], none: str = "Other") -> float:
    (score,) = RelationScores.of(predicted, gold, none).weighed(np.ones((1, len(gold))))["macro_f1"]
    return float(score) / 100


def official(predicted: list[str], gold: list[str]) -> Fraction:
    """As the task's scorer describes it: a matrix of relations, and a column of its own (xDIRx) for answers
    that are right but for the direction; precision counts it among the answers, recall among the truth.
    """
    cells: dict[tuple[str, str], int] = {}
    wrong_way = dict.fromkeys(RELATIONS, 0)
    for said, right in zip(predicted, gold, strict=True):
        said_name, right_name = said.partition("(")[0], right.partition("(")[0]
        if said_name == right_name and said != right:
            wrong_way[right_name] += 1
        else:
            cells[right_name, said_name] = cells.get((right_name, said_name), 0) + 1
    names = (*RELATIONS, "Other")
    total = Fraction(0)
    for name in RELATIONS:
        hits = cells.get((name, name), 0)
        answered = sum(cells.get((row, name), 0) for row in names) + wrong_way[name]
        actual = sum(cells.get((name, column), 0) for column in names) + wrong_way[name]
        precision = Fraction(hits, answered) if answered else Fraction(0)
        recall = Fraction(hits, actual) if actual else Fraction(0)
        total += 2 * precision * recall / (precision + recall) if hits else 0
    return total / len(RELATIONS)


@pytest.mark.parametrize("seed", range(20))
def test_equals_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    gold = [*LABELS, *rng.choices(LABELS, k=40)]
    predicted = [right if rng.random() < seed / 20 else rng.choice(LABELS) for right in gold]
    assert scored(predicted, gold) == pytest.approx(float(official(predicted, gold)))


def test_a_wrong_direction_is_wrong_and_was_told() -> None:
    gold = ["Cause-Effect(e1,e2)", "Cause-Effect(e1,e2)", "Other", "Other"]
    predicted = ["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Cause-Effect(e1,e2)", "Other"]
    assert RelationScores.of(predicted, gold, "Other").by_relation() == {
        "Cause-Effect": {"precision": pytest.approx(100 / 3), "recall": 50, "f1": pytest.approx(40), "n": 2}
    }


def test_other_label_sets() -> None:
    assert relation("founded_by") == "founded_by"
    assert relation("Part(e2,e1)") == "Part"
    gold, predicted = ["works_for", "none", "lives_in"], ["works_for", "lives_in", "lives_in"]
    assert scored(predicted, gold, "none") == pytest.approx((1 + 2 / 3) / 2)
    assert scored(predicted, gold) == pytest.approx((1 + 2 / 3 + 0) / 3), "nothing is left out"
    assert scored(["none"], ["none"], "none") == 1


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_how_often_an_example_counts(seed: int) -> None:
    rng = random.Random(seed)
    gold, predicted = rng.choices(LABELS, k=31), rng.choices(LABELS, k=31)
    rows = [[rng.randrange(3) for _ in gold] for _ in range(7)]
    found = RelationScores.of(predicted, gold, "Other").weighed(np.array(rows, np.float64))
    for row, weights in enumerate(rows):
        said, right = (
            [label for label, n in zip(each, weights, strict=True) for _ in range(n)]
            for each in (predicted, gold)
        )
        assert found["macro_f1"][row] == pytest.approx(100 * scored(said, right))
        assert found["accuracy"][row] == pytest.approx(100 * np.mean(np.array(said) == np.array(right)))
