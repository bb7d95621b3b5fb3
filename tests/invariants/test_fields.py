"""What holds for every field and input: alone as in a batch, from the cache as fresh, from disk as fitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.cache import Examples
from regard.data.example import Example
from regard.fields.audio import Audio, Source
from regard.fields.axis import Axis
from regard.fields.entities import Entities, MarkedText
from regard.fields.field import Coded, Field, Input
from regard.fields.joined import Joined
from regard.fields.label import Label
from regard.fields.labels import Labels
from regard.fields.padding import NOWHERE
from regard.fields.span import Span
from regard.fields.tags import Tags, Words
from regard.fields.text import Text
from regard.fields.windows import ContextWindows
from regard.fields.word_times import WordTimes
from regard.files.row import Row
from regard.text.tokenizer import Tokenizer, TokenizerConfig
from sounds import noise, wav

TEXTS = (
    "amber birch",
    "the fog lies on the Rhine, the heron stands in it",
    "cedar",
    "delta ember fjord grove heath inlet jetty knoll",
)
TOKENIZER = Tokenizer.train(TokenizerConfig(kind="char", vocab_size=60, min_frequency=1), TEXTS)
MARKED = [f"<e1>{text[:4]}</e1> {text} <e2>{text[-3:]}</e2>" for text in TEXTS]

INPUTS: dict[str, tuple[Input, list[list[Any]]]] = {
    "text": (Joined((Text(learnt=TOKENIZER),), 11), [[text] for text in TEXTS]),
    "pair": (Joined((Text(learnt=TOKENIZER),) * 2, 17), list(map(list, pairwise(TEXTS)))),
    "marked": (MarkedText((Entities(learnt=TOKENIZER),), 19), [[text] for text in MARKED]),
    "words": (Words(learnt=TOKENIZER, split="signs").alone(13), [[text] for text in TEXTS]),
    "context": (
        ContextWindows(
            (Text(learnt=TOKENIZER), Text(learnt=TOKENIZER, located=True)), 17, max_question=5, overlap=3
        ),
        list(map(list, zip(TEXTS, TEXTS[::-1], strict=True))),
    ),
}
FIELDS: dict[str, tuple[Field, list[Any], list[Any]]] = {
    "text": (Text(), list(TEXTS), list(TEXTS)),
    "entities": (Entities(), list(TEXTS), MARKED),
    "words": (Words(split="spaces"), list(TEXTS), [*TEXTS, ["amber", "the Rhine"]]),
    "label": (Label(), ["yes", "no", "yes"], ["no", "yes"]),
    "labels": (Labels(), ["a", "b", "c"], ["c,a", ["b"], ""]),
    "tags": (Tags(), ["O", "B-X", "I-X"], ["O B-X I-X", ["O"]]),
    "span": (Span(), [[(0, 1)], []], []),
    "audio": (Audio(), [Source(wav(noise(0.2)), "x")], [wav(noise(0.3, 2))]),
    "word_times": (WordTimes(), [], ['[{"word": "a", "start": 0, "end": 0.5}]', ""]),
}
each_input = pytest.mark.parametrize(("read", "cells"), INPUTS.values(), ids=INPUTS.keys())


def encoded(read: Any, cells: Sequence[Sequence[Any]]) -> list[Coded]:
    columns = zip(*cells, strict=True)
    parts = [
        one.encode([one.parse(cell, "x:1") for cell in column])
        for one, column in zip(read.fields, columns, strict=True)
    ]
    return [read.assemble(part) for part in zip(*parts, strict=True)]


@dataclass(frozen=True)
class Encoder:
    """The least that the cache asks of a task."""

    read: Any
    layout, draws = Examples, False

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        coded = encoded(self.read, [row.cells["all"] for row in rows])
        return [Example(row, one.arrays, one.notes) for row, one in zip(rows, coded, strict=True)]

    def unusable(self, example: Example) -> str | None:
        return "empty" if self.read.is_empty(example.arrays) else None

    def size(self, example: Example) -> tuple[int]:
        return (self.read.size(example.arrays),)

    def keep(self, example: Example) -> Any:
        return example.arrays

    def revive(self, row: Row, kept: Any) -> Example:
        return Example(row, kept)


@each_input
def test_the_cache_changes_nothing(read: Any, cells: list[list[Any]]) -> None:
    fresh = [coded.arrays for coded in encoded(read, cells)]
    revived = Examples.of(Encoder(read), [Row({"all": one}, "x", 1) for one in cells])
    assert len(revived) == len(fresh)
    assert revived.sizes[:, 0].tolist() == [read.size(arrays) for arrays in fresh]
    again = read.collate([example.arrays for example in revived])
    for name, array in read.collate(fresh).items():
        assert (again[name].dtype, again[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(again[name], array)


@each_input
def test_an_example_is_the_same_alone_and_in_a_batch(read: Any, cells: list[list[Any]]) -> None:
    many = [coded.arrays for coded in encoded(read, cells)]
    together, row = read.collate(many), 0
    for number, arrays in enumerate(many):
        alone = read.collate([arrays])
        n_rows, length = alone["ids"].shape
        for name in {"ids", "segments"} & alone.keys():
            np.testing.assert_array_equal(together[name][row : row + n_rows, :length], alone[name])
        np.testing.assert_array_equal(together["lengths"][row : row + n_rows], alone["lengths"])
        if "places" in alone:
            own = together["places"][number][: alone["places"].shape[1]]
            assert (together["places"][number][len(own) :] == NOWHERE).all()
            np.testing.assert_array_equal(
                together["ids"].flatten()[own], alone["ids"].flatten()[alone["places"][0]]
            )
        row += n_rows
    assert row == len(together["ids"])
    assert together["lengths"].max() <= read.most


@each_input
def test_what_is_left_out_is_one_unit_and_never_a_mark(read: Any, cells: list[list[Any]]) -> None:
    for coded, values in zip(encoded(read, cells), cells, strict=True):
        arrays = coded.arrays
        if read.collate([arrays])["ids"].shape[0] > 1:
            continue  # an answer is explained in one window
        batch, axis = read.collate([arrays]), Axis("x", ())
        units = range(batch["lengths"][0])
        without = read.without(batch, axis, units, "blank")
        changed = without["ids"] != batch["ids"]
        assert [n for n in units if changed[n].sum() == 1] == [
            n for n in units if not read.is_mark(batch["ids"])[0, n]
        ]
        assert not changed[~np.eye(len(units), changed.shape[1], dtype=bool)].any()
        parsed = [one.parse(value, "x:1") for one, value in zip(read.fields, values, strict=True)]
        assert len(read.axis(parsed, coded)) == len(units)


@pytest.mark.parametrize(("unfitted", "learnt_from", "cells"), FIELDS.values(), ids=FIELDS.keys())
def test_a_field_comes_back_from_disk(
    unfitted: Any, learnt_from: list[Any], cells: list[Any], tmp_path: Path
) -> None:
    fitted = unfitted.fit(learnt_from)
    fitted.save(tmp_path)
    loaded = unfitted.load(tmp_path)
    assert loaded.width == fitted.width
    values = [fitted.parse(fitted.clean(cell, "x:1", "cell", tmp_path), "x:1") for cell in cells]
    for ours, again in zip(fitted.encode(values), loaded.encode(values), strict=True):
        assert ours.arrays.keys() == again.arrays.keys()
        for name, array in ours.arrays.items():
            np.testing.assert_array_equal(array, again.arrays[name])
    assert fitted.__class__ is loaded.__class__
    assert getattr(loaded, "may_be_none", None) == getattr(fitted, "may_be_none", None)
