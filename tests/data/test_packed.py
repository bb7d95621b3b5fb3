"""Text without seams: every token is foretold once an epoch, from wherever the epoch begins."""

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.batching import START, Order
from regard.data.cache import Examples, write
from regard.data.layout import scored
from regard.data.packed import Packed
from regard.errors import DataError
from regard.files.row import Row
from regard.tasks import Classify, LanguageModel, LanguageModelConfig
from regard.text.tokenizer import EOS

BLOCK = 7
TEXTS = ["In the middle of the\n", "journey", "of our life", "", "I found myself within a dark\n", "wood"]
ROWS = [Row({"text": text}, "ab"[number > 2], number) for number, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def task() -> LanguageModel:
    tokenizer = {"kind": "char", "vocab_size": 60, "min_frequency": 1}
    config = LanguageModelConfig.model_validate({"tokenizer": tokenizer, "max_length": BLOCK})
    return LanguageModel.fit(config, ROWS)


def ring(task: LanguageModel) -> list[int]:
    """Documents one after another, closed where they end and only there."""
    ids = task.tokenizer.ids(TEXTS)
    return [*ids[0], *ids[1], EOS, *ids[2], EOS, *ids[4], *ids[5], EOS]


@pytest.mark.parametrize("seed", range(5))
def test_every_token_is_foretold_once_an_epoch(task: LanguageModel, seed: int) -> None:
    packed, expected = Packed.of(task, ROWS), ring(task)
    pairs = Counter(zip([expected[-1], *expected[:-1]], expected, strict=True))
    begins = set()
    for epoch in range(3):
        examples = packed.in_epoch(seed, epoch)
        order = Order(examples.sizes, 3 * BLOCK, seed)
        batches = list(order.epoch(epoch))
        assert sorted(i for batch in batches for i in batch) == list(range(len(examples)))
        blocks = [examples[i].arrays["ids"] for batch in batches for i in batch]
        assert Counter(map(len, blocks))[BLOCK + 1] >= len(blocks) - 1, "only one is shorter"
        told = Counter(pair for block in blocks for pair in itertools.pairwise(block))
        assert told == pairs
        begins.add(examples[0].arrays["ids"].tobytes())
    assert len(begins) == 3, "each epoch begins elsewhere"


def test_an_epoch_is_a_function_of_seed_and_number(task: LanguageModel, tmp_path: Path) -> None:
    write(task, ROWS, tmp_path / "cache", name="text")
    opened: Any = task.layout.open(task, tmp_path / "cache")
    assert isinstance(opened, Packed)
    made = Packed.of(task, ROWS)
    for epoch in (4, 2, 4):
        one, other = opened.in_epoch(3, epoch), made.in_epoch(3, epoch)
        for mine, its in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine.arrays["ids"], its.arrays["ids"])
    one, other = (opened.in_epoch(seed, 4)[0].arrays["ids"] for seed in (3, 5))
    assert one.tolist() != other.tolist()
    assert Order(opened.sizes, 20, 3).batch(START) == Order(made.sizes, 20, 3).batch(START)


def test_a_block_knows_the_row_in_which_it_begins(task: LanguageModel) -> None:
    packed = Packed.of(task, ROWS)
    lengths = np.cumsum([21, 8, 12, 29, 5])
    rows = [ROWS[i] for i in (0, 1, 2, 4, 5)]
    for i in range(len(packed)):
        begins = rows[int(np.searchsorted(lengths, i * BLOCK, side="right"))]
        assert packed.row(i).where == begins.where


def test_what_is_scored_is_all_of_it_in_order(task: LanguageModel) -> None:
    blocks = [block.arrays["ids"][1:] for block in scored(task, ROWS, "text")]
    assert np.concatenate(blocks).tolist() == ring(task)


def test_who_has_no_blocks_has_rows() -> None:
    assert Classify.layout is Examples


def test_nothing_to_score_is_said(task: LanguageModel) -> None:
    with pytest.raises(DataError, match=r"a\.txt: holds no text"):
        scored(task, [Row({"text": ""}, "a.txt", 1)], "a.txt")


def test_a_text_shorter_than_a_block_is_refused(task: LanguageModel) -> None:
    packed = Packed.of(task, [Row({"text": "wood"}, "a.txt", 1)])
    with pytest.raises(DataError, match=r"a\.txt: holds 5 tokens, fewer than one block of 7; give more text"):
        packed.refuse_unfit("a.txt")
