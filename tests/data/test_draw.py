"""Examples drawn anew in every epoch: from the seed, the epoch and their number, and nothing else."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from regard.data.cache import Examples, write
from regard.data.example import Example
from regard.files.row import Row
from regard.tasks import Classify, ClassifyConfig

ROWS = [Row({"text": "the heath " * (1 + n % 5), "label": "ab"[n % 2]}, "train.tsv", n) for n in range(1, 14)]
CONFIG = ClassifyConfig.model_validate({"tokenizer": {"kind": "word", "vocab_size": 40}})


class Mixing(Classify):
    """Takes some tokens of a partner."""

    draws: ClassVar[bool] = True

    def draw(self, example: Example, rng: np.random.Generator, others: Sequence[Example]) -> Example:
        partner = others[int(rng.integers(len(others)))].arrays["ids"]
        ids = np.where(rng.random(len(example.arrays["ids"])) < 0.5, np.resize(partner, 1), -1)
        return replace(example, arrays={**example.arrays, "ids": ids, "other": partner})


def drawn(examples: Any, order: Sequence[int]) -> dict[int, list[int]]:
    return {i: examples[i].arrays["ids"].tolist() for i in order}


@pytest.fixture
def examples(tmp_path: Path) -> Examples:
    task = Mixing.fit(CONFIG, ROWS)
    write(task, ROWS, tmp_path / "cache", name="data")
    found = Examples.open(task, tmp_path / "cache")
    assert found is not None
    return found


def test_what_is_drawn_depends_on_seed_epoch_and_example_alone(examples: Examples) -> None:
    forwards, backwards = range(len(examples)), range(len(examples))[::-1]
    epoch = drawn(examples.in_epoch(3, 1), forwards)
    assert epoch == drawn(examples.in_epoch(3, 1), backwards)
    assert epoch == drawn(examples.in_epoch(5, 2).in_epoch(3, 1), backwards)
    in_memory = Examples.of(Mixing.fit(CONFIG, ROWS), ROWS)
    assert epoch == drawn(in_memory.in_epoch(3, 1), forwards)
    assert epoch != drawn(examples.in_epoch(3, 2), forwards)
    assert epoch != drawn(examples.in_epoch(4, 1), forwards)


def test_partners_are_as_they_are_cached(examples: Examples) -> None:
    cached = [one.arrays["ids"].tolist() for one in examples]
    for one in examples.in_epoch(3, 1).in_epoch(3, 2):
        assert one.arrays["other"].tolist() in cached


def test_nothing_is_drawn_outside_of_an_epoch(examples: Examples) -> None:
    assert all("other" not in one.arrays for one in examples)


def test_a_task_that_draws_nothing_pays_nothing() -> None:
    plain = Examples.of(Classify.fit(CONFIG, ROWS), ROWS)
    assert plain.in_epoch(3, 1) is plain
