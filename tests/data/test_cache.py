"""Examples in arrays: what comes out is what went in, from memory and from files larger than it."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data import cache, splits
from regard.data.cache import Arrays, Examples, held_out, write
from regard.data.splits import End, Every
from regard.errors import DataError
from regard.files.row import Row
from regard.tasks import Classify, ClassifyConfig, Translate, TranslateConfig

WORDS = ["the", "heath", "the", "grove", "a", "mile", "of", "moss", "and", "stone", "under", "rain"]


def _are_equal(value: Any, other: Any) -> bool:
    if not isinstance(value, dict):
        return bool(value.equal(other))
    return value.keys() == other.keys() and all(value[name].equal(other[name]) for name in value)


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
    monkeypatch.setattr(cache, "CHUNK", 17)


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
    expected = [example for example in encoded if not task.unusable(example)]
    assert len(found) == len(expected)
    assert sum(found.left_out.values()) == 120 - len(expected) > 0
    assert found.left_out == Counter(reason for one in encoded if (reason := task.unusable(one)))
    for i, example in enumerate(expected):
        revived = found[i]
        assert revived.row.where == example.row.where == found.row(i).where
        assert tuple(found.sizes[i]) == task.size(example) == task.size(revived)
        kept, originally = task.keep(revived), task.keep(example)
        assert {name: array.tolist() for name, array in kept.items()} == {
            name: array.tolist() for name, array in originally.items()
        }
    batch, twin = task.collate([found[3], found[1]]), task.collate([expected[3], expected[1]])
    assert batch.counts == twin.counts
    for name, value in vars(batch).items():
        other = getattr(twin, name)
        same = name == "examples" or value is other or _are_equal(value, other)
        assert same, f"{name}: a batch of revived examples is the batch of the originals"


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_large_number_takes_more_room_from_the_row_on_that_has_it(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the second of two texts begins, which no vocabulary bounds."""
    task, keep = TASKS["classify"], Classify.keep

    def far_on(self: Classify, example: Any) -> Arrays:
        second = 70_000 if example.row.file == "part-1.tsv" else 5
        return {**keep(self, example), "second": np.array([second])}

    monkeypatch.setattr(Classify, "keep", far_on)
    monkeypatch.setattr(cache, "REWRITTEN", 7)
    if where == "memory":
        found: Any = Examples.of(task, rows(120))
    else:
        write(task, rows(120), tmp_path / "cache", name="data")
        found = Examples.open(task, tmp_path / "cache")
    expected = [example for example in task.encode(rows(120)) if not task.unusable(example)]
    assert found[0].arrays["ids"].dtype == np.uint16
    for i, example in enumerate(expected):
        assert found[i].arrays["ids"].tolist() == example.arrays["ids"].tolist()
        assert found[i].arrays["label"] == example.arrays["label"]
        assert found[i].arrays["second"] == (70_000 if example.row.file == "part-1.tsv" else 5)


@pytest.mark.usefixtures("small_chunks")
def test_some_rows_are_held_out(task: Any, tmp_path: Path) -> None:
    heard: list[int] = []
    kept_back: list[Row] = []
    given = Every().split(20, rows(120), kept_back)
    write(task, given, tmp_path / "cache", name="data", held_out=kept_back, tick=heard.append)
    found = Examples.open(task, tmp_path / "cache")
    assert held_out(tmp_path / "cache") == rows(120)[19::20]
    kept = {found.row(i).where for i in range(len(found))}
    assert not kept & {row.where for row in rows(120)[19::20]}
    assert sum(heard) == 114


def test_no_usable_example_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    empty = [Row({"source": "", "target": ""}, "a.tsv", 1)]
    with pytest.raises(DataError, match=r"a\.tsv: no row can be trained on"):
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
            (folder / "target.values").unlink()
        case "cut":
            (folder / "ids.values").write_bytes((folder / "ids.values").read_bytes()[:-2])
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


@pytest.mark.parametrize("whole", [True, False])
def test_one_flipped_bit_in_any_file_is_seen(tmp_path: Path, whole: bool) -> None:
    task, folder = TASKS["translate"], tmp_path / "cache"
    held_back: list[Row] = []
    write(task, Every().split(20, rows(60), held_back), folder, name="data", held_out=held_back)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for place in (0, len(content) // 2, len(content) - 1):
            flipped = bytearray(content)
            flipped[place] ^= 1
            path.write_bytes(flipped)
            assert Examples.open(task, folder, whole=whole) is None, (path.name, place)
        path.write_bytes(content)
    assert Examples.open(task, folder, whole=whole) is not None


def test_of_a_large_folder_a_sample_is_looked_at_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "BLOCK", 64)
    monkeypatch.setattr(cache, "SAMPLED", 7)
    task, folder, seen = TASKS["translate"], tmp_path / "cache", list[bytes]()
    write(task, rows(120), folder, name="data")
    summed = cache._sum
    monkeypatch.setattr(cache, "_sum", lambda block: (seen.append(block), summed(block))[1])
    assert Examples.open(task, folder) is not None
    assert len(seen) == 1 + 7, "the index, and so many blocks"
    seen.clear()
    assert Examples.open(task, folder, whole=True) is not None
    assert len(seen) > 50


def test_arrays_of_any_type_and_shape_come_back(tmp_path: Path) -> None:
    class Pictures:
        layout, draws = Examples, False

        def encode(self, given: list[Row]) -> list[tuple[Row, Any]]:
            rng = np.random.default_rng(len(given))
            return [
                (row, {
                    "pixels": rng.integers(0, 255, (row.line, 5, 3), np.uint8),
                    "frames": rng.normal(size=(row.line + 1, 2)).astype(np.float32),
                    "below": rng.integers(-9, 9, 2),
                })
                for row in given
            ]  # fmt: skip

        def unusable(self, example: Any) -> str | None:
            return None if example[0].line % 5 else "odd"

        def size(self, example: Any) -> tuple[int]:
            return (example[0].line,)

        def keep(self, example: Any) -> Arrays:
            return dict(example[1])

        def revive(self, row: Row, kept: Arrays) -> Any:
            return row, kept

    given, task = [Row({}, "x", line) for line in range(1, 14)], Pictures()
    write(task, given, tmp_path / "cache", name="data")
    found = Examples.open(task, tmp_path / "cache")
    assert found is not None
    wanted = [example for example in task.encode(given) if not task.unusable(example)]
    for (row, arrays), (before, kept) in zip(found, wanted, strict=True):
        assert row.line == before.line
        for name, array in kept.items():
            np.testing.assert_array_equal(arrays[name], array)
    assert found[0][1]["pixels"].dtype == np.uint8, "pictures are as large as they were"
