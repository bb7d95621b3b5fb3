"""Two texts with one label: how they are read together, cut, and taken apart again."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch

import regard
from berts import their_tokenizer, written
from regard.decode import in_order
from regard.fields.joined import shortened
from regard.files.row import Row
from regard.interop.importing import import_folder
from regard.tasks import ClassifyPair, ClassifyPairConfig
from regard.tasks.task import evaluating
from regard.text.tokenizer import EOS
from tiny import classifier, stirred

LINES = [("a man sleeps", "he is awake", "no"), ("a man sleeps", "he rests", "yes")]


def row(text: str, second: str, label: str | None = None) -> Row:
    return Row({"text": text, "second": second} | ({} if label is None else {"label": label}), "x.tsv", 1)


def fitted(**changes: Any) -> ClassifyPair:
    tokenizer = {"kind": "word", "vocab_size": 60, "min_frequency": 1}
    config = ClassifyPairConfig.model_validate({"tokenizer": tokenizer, "max_length": 9} | changes)
    return ClassifyPair.fit(config, [row(*line) for line in LINES])


def test_a_mark_stands_after_each_text() -> None:
    task = fitted()
    (example,) = task.encode([row(*LINES[0])])
    first, second = (task.tokenizer.encode(text).ids for text in LINES[0][:2])
    assert example.arrays["ids"].tolist() == [*first, EOS, *second, EOS]
    assert (example.arrays["second"].tolist(), example.arrays["label"].tolist()) == ([4], [0])
    assert not example.notes["cut"]
    assert " awake" in task.tokenizer.names, "the vocabulary is learnt from both"


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        ((3, 4), (3, 4)),
        ((3, 9), (3, 5)),
        ((9, 2), (6, 2)),
        ((9, 9), (4, 4)),
        ((5, 4), (4, 4)),
        ((0, 9), (0, 8)),
    ],
)
def test_the_longer_one_is_cut_first(lengths: tuple[int, int], kept: tuple[int, int]) -> None:
    texts = [[*range(n)] for n in lengths]
    assert shortened(texts, 9) == [[*range(n)] for n in kept]


@pytest.mark.parametrize("room", [8, 9])
def test_they_are_cut_as_tokenizers_cuts_them(room: int) -> None:
    theirs = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a"))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    theirs.enable_truncation(room, strategy="longest_first")
    for lengths in product(range(1, room + 3), repeat=2):
        both = theirs.encode(*("a " * n for n in lengths))
        kept = shortened([[0] * n for n in lengths], room + 1)
        assert [len(text) for text in kept] == [both.type_ids.count(number) for number in (0, 1)], lengths


def test_what_says_nothing_is_not_learnt_from() -> None:
    task = fitted()
    both, first, second = task.encode([row(*LINES[0]), row("a man", ""), row("", "he rests")])
    assert task.unusable(both) is None
    assert task.unusable(first)
    assert task.unusable(second)


def test_a_cache_keeps_where_the_second_begins() -> None:
    task = fitted()
    (example,) = task.encode([row(*LINES[1])])
    again = task.revive(example.row, task.keep(example))
    assert again.arrays.keys() == example.arrays.keys() == {"ids", "second", "label"}
    for name, array in example.arrays.items():
        assert np.array_equal(again.arrays[name], array), name


def test_a_bert_is_told_which_text_is_which() -> None:
    task = fitted()
    model = stirred(classifier("bert").build(task.widths))
    examples = task.encode([row(*LINES[0]), row("a", "he is awake")])
    batch = task.collate(examples)
    assert batch.inputs["segments"].tolist() == [[0] * 4 + [1] * 4, [0] * 2 + [1] * 4 + [0] * 2]
    with evaluating(model):
        told_BC = torch.tensor(
            [list(answer.probabilities.values()) for answer in in_order(task.predict(model, batch))]
        )
        torch.testing.assert_close(told_BC, model(batch.inputs).softmax(-1))
        alone = {name: one for name, one in batch.inputs.items() if name != "segments"}
        assert not torch.allclose(told_BC, model(alone).softmax(-1))


def test_pairs_are_read_as_transformers_reads_them(tmp_path: Path) -> None:
    theirs = written(tmp_path / "hf", "BertForSequenceClassification", num_labels=3)
    import_folder(tmp_path / "hf", tmp_path / "own")
    own = regard.load(tmp_path / "own", device="cpu")
    config = ClassifyPairConfig(max_length=own.task_config.max_length)
    task = ClassifyPair.of_vocabulary(config, own.task.tokenizer, own.task.labels)
    texts = ("amber birch", "cedar amber amber delta"), ("amber " * 30, "birch"), ("cedar", "delta " * 30)
    for text, second in texts:
        given = their_tokenizer(tmp_path / "hf")(
            text, second, truncation="longest_first", max_length=31, return_tensors="pt"
        )
        batch = task.collate(task.encode([row(text, second)]))
        assert batch.inputs["ids"].tolist() == given["input_ids"].tolist()
        with evaluating(own.model):
            torch.testing.assert_close(own.model(batch.inputs), theirs(**given).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["rnn", "transformer", "words", "bert"])
def test_left_out_one_by_one(kind: str) -> None:
    """A word is gone from its text; a mark stays where it is."""
    task = fitted()
    model = stirred(classifier(kind).build(task.widths))
    (example,) = task.encode([row(*LINES[0])])
    with evaluating(model):
        (answer,) = in_order(task.predict(model, task.collate([example])))
        whole = task.force(example, answer)
        left = task.leave_out(whole, task.axis(example), range(7))
        told_KT = task.replay(model, left)
        for place in range(7):
            arrays = {"ids": np.delete(example.arrays["ids"], place), "second": np.array([4 - (place < 4)])}
            kept = replace(whole.examples[0], arrays={**whole.examples[0].arrays, **arrays})
            alone = whole if example.arrays["ids"][place] == EOS else task.collate([kept])
            torch.testing.assert_close(told_KT[place : place + 1], task.replay(model, alone))


def test_the_axis_names_both() -> None:
    task = fitted()
    model = stirred(classifier("rnn").build(task.widths))
    (example,) = task.encode([row("a man sleeps", "he is awake he is awake awake")])
    (answer,) = in_order(task.predict(model, task.collate([example])))
    shown = task.axes(example, answer).by_name["input"].labels
    assert len(shown) == len(example.arrays["ids"])
    end = task.tokenizer.tokens([EOS])[0]
    assert shown == ("a", "man", "sleeps", end, "he", "is", "awake", "he", "is", end)
