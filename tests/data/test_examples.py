"""Examples in arrays: what comes out is what went in, from memory and from files larger than it."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data import examples, splits
from regard.data.examples import (
    ADDED,
    Examples,
    Kept,
    held_out,
    write,
)
from regard.data.splits import End, Every
from regard.errors import DataError
from regard.files.row import Row
from regard.tasks import Classify, ClassifyConfig, Translate, TranslateConfig
from regard.text.tokenizer import Tokenizer

WORDS = ["the", "heath", "the", "grove", "a", "mile", "of", "moss", "and", "stone", "under", "rain"]


def rows(n: int) -> list[Row]:
    rng = random.Random(7)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(n)]
    fields = [
        {"source": text, "target": text[::-1], "text": text, "label": rng.choice("abc")} for text in texts
    ]
    fields[5]["source"] = fields[5]["text"] = ""
    return [Row(one, f"part-{number // 50}.tsv", number % 50 + 1) for number, one in enumerate(fields)]


SMALL = {"tokenizer": {"kind": "word", "vocab_size": 40}, "max_length": 7}
TASKS: dict[str, Any] = {
    "translate": Translate.fit(TranslateConfig.model_validate(SMALL), rows(120)),
    "classify": Classify.fit(ClassifyConfig.model_validate(SMALL), rows(120)),
}


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> Any:
    return TASKS[request.param]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "CHUNK", 17)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_the_usable_examples_come_back_with_their_places(task: Any, where: str, tmp_path: Path) -> None:
    if where == "memory":
        found = Examples.of(task, iter(rows(120)))
    else:
        write(task, iter(rows(120)), tmp_path / "cache", name="data")
        found = Examples.open(task, tmp_path / "cache")
        assert isinstance(found.sizes, np.memmap)
    encoded = task.encode(rows(120))
    expected = [example for example in encoded if task.usable(example)]
    assert len(found) == len(expected)
    assert found.n_left_out == 120 - len(expected) > 0
    for i, example in enumerate(expected):
        revived = found[i]
        assert revived.row.where == example.row.where == found.row(i).where
        assert tuple(found.sizes[i]) == task.size(example) == task.size(revived)
        for one, other in zip(task.keep(revived), task.keep(example), strict=True):
            assert one.tolist() == other.tolist()
    batch, twin = task.collate([found[3], found[1]]), task.collate([expected[3], expected[1]])
    assert batch.counts == twin.counts
    for name, value in vars(batch).items():
        other = getattr(twin, name)
        same = name == "examples" or value is other or value.equal(other)
        assert same, f"{name}: a batch of revived examples is the batch of the originals"


@pytest.mark.parametrize(("size", "dtype"), [(2**16 - ADDED, np.uint16), (2**16 - ADDED + 1, np.uint32)])
def test_a_large_vocabulary_takes_more_room(
    size: int, dtype: type[np.integer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tokenizer, "__len__", lambda self: size)
    assert Examples.of(TASKS["translate"], rows(20))[0].source.dtype == dtype


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_large_number_takes_more_room_from_the_row_on_that_has_it(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the second of two texts begins, which no vocabulary bounds."""
    task, keep = TASKS["classify"], Classify.keep

    def far_on(self: Classify, example: Any) -> Kept:
        tokens, numbers = keep(self, example)
        return tokens, np.append(numbers, 70_000 if example.row.file == "part-1.tsv" else 5)

    monkeypatch.setattr(Classify, "keep", far_on)
    monkeypatch.setattr(examples, "REWRITTEN", 7)
    if where == "memory":
        found: Any = Examples.of(task, rows(120))
    else:
        write(task, rows(120), tmp_path / "cache", name="data")
        found = Examples.open(task, tmp_path / "cache")
    expected = [example for example in task.encode(rows(120)) if task.usable(example)]
    assert found[0].tokens.dtype == np.uint16
    for i, example in enumerate(expected):
        assert found[i].tokens.tolist() == example.tokens.tolist()
        assert found[i].label == example.label
        assert found[i].second == (70_000 if example.row.file == "part-1.tsv" else 5)


@pytest.mark.usefixtures("small_chunks")
def test_some_rows_are_held_out(task: Any, tmp_path: Path) -> None:
    heard: list[int] = []
    kept_back: list[Row] = []
    given = Every().split(20, rows(120), kept_back)
    write(task, given, tmp_path / "cache", name="data", kept_back=kept_back, tick=heard.append)
    found = Examples.open(task, tmp_path / "cache")
    assert held_out(tmp_path / "cache") == rows(120)[19::20]
    kept = {found.row(i).where for i in range(len(found))}
    assert not kept & {row.where for row in rows(120)[19::20]}
    assert sum(heard) == 114


def test_no_usable_example_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    empty = [Row({"source": "", "target": ""}, "a.tsv", 1)]
    with pytest.raises(DataError, match=r"a\.tsv: no usable examples for train"):
        write(TASKS["translate"], empty, tmp_path / "cache", name="a.tsv")
    assert list(tmp_path.iterdir()) == []


def test_a_fault_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    def breaking() -> Iterator[Row]:
        yield from rows(60)
        raise DataError("b.tsv:61: damaged")

    with pytest.raises(DataError, match="damaged"):
        write(TASKS["translate"], breaking(), tmp_path / "cache", name="b.tsv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["missing", "cut", "no index", "other format", "nonsense"])
def test_a_damaged_cache_is_not_used(damage: str, tmp_path: Path) -> None:
    task, folder = TASKS["translate"], tmp_path / "cache"
    assert Examples.open(task, folder) is None
    write(task, rows(60), folder, name="data")
    index = folder / "index.json"
    match damage:
        case "missing":
            (folder / "1.values").unlink()
        case "cut":
            (folder / "0.values").write_bytes((folder / "0.values").read_bytes()[:-2])
        case "no index":
            index.unlink()
        case "other format":
            index.write_text(json.dumps(json.loads(index.read_text()) | {"format_version": 99}))
        case "nonsense":
            index.write_text("[]")
    assert Examples.open(task, folder) is None


def test_of_a_text_the_end_is_kept_back(monkeypatch: pytest.MonkeyPatch) -> None:
    text = [
        Row({"text": part}, "a.txt", number) for number, part in enumerate(("abcde\n", "fghijklm\n", "no"))
    ]
    kept_back: list[Row] = []
    learnt = list(End().split(End().border(text), text, kept_back))
    assert [row.cells["text"] for row in learnt] == ["abcde\n", "fghijklm\n", "n"]
    assert [row.cells["text"] for row in kept_back] == ["o"]
    monkeypatch.setattr(splits, "END", 2)
    kept_back.clear()
    learnt = list(End().split(End().border(text), text, kept_back))
    assert [row.cells["text"] for row in learnt] == ["abcde\n", "fgh"]
    assert [(row.cells["text"], row.line) for row in kept_back] == [("ijklm\n", 1), ("no", 2)]


def test_rows_that_belong_together_are_held_out_together() -> None:
    kept_back: list[Row] = []
    given = [Row({"context": f"c{n // 3}", "question": str(n)}, "x", n) for n in range(14)]
    left = list(Every(together="context").split(2, given, kept_back))
    assert [row.line for row in kept_back] == [3, 4, 5, 9, 10, 11]
    assert [row.line for row in left] == [0, 1, 2, 6, 7, 8, 12, 13]
