"""The data of a recipe: encoded once, found again by whoever trains on the same."""

import json
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.data import cache
from regard.data.splits import Every
from regard.files import fingerprint
from regard.files.row import Row
from regard.recipe import Recipe
from regard.runs import corpus
from regard.runs.prepare import prepare
from tiny import translating


def caches(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / ".regard").iterdir() if path.is_dir())


def test_the_second_run_on_the_same_data_encodes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = translating(tmp_path, max_steps=1)
    regard.train(given, quiet=True)
    found = caches(tmp_path)
    assert len(found) == 1

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("encoded again")

    monkeypatch.setattr(corpus.cache, "write", refused)
    other = given.model_copy(update={"run": str(tmp_path / "other"), "seed": 5})
    regard.train(other, quiet=True)
    assert caches(tmp_path) == found


@pytest.mark.parametrize("changed", ["data", "max_length", "columns"])
def test_what_is_encoded_otherwise_has_another_name(tmp_path: Path, changed: str) -> None:
    given = translating(tmp_path, max_steps=1)
    regard.train(given, quiet=True)
    settings = given.model_dump() | {"run": str(tmp_path / "other")}
    match changed:
        case "data":
            source = Path(given.data.train[0])
            source.write_text(source.read_text().replace("\n", " a\n", 1))
        case "max_length":
            settings["task"]["max_length"] = 5
        case "columns":
            settings["data"]["columns"] = {"source": 2, "target": 1}
    regard.train(Recipe.parse(settings), quiet=True)
    assert len(caches(tmp_path)) == 2


def test_a_search_needs_no_new_encoding(tmp_path: Path) -> None:
    given = translating(tmp_path, max_steps=1)
    regard.train(given, quiet=True)
    settings = given.model_dump() | {"run": str(tmp_path / "other")}
    settings["task"]["decode"]["beam"] = 2
    regard.train(Recipe.parse(settings), quiet=True)
    assert len(caches(tmp_path)) == 1


def test_a_deleted_or_damaged_cache_is_made_again(tmp_path: Path) -> None:
    given = translating(tmp_path, max_steps=1)
    regard.train(given, quiet=True)
    [name] = caches(tmp_path)
    values = tmp_path / ".regard" / name / "ids.values"
    whole = values.read_bytes()
    values.write_bytes(whole[:-1])
    with prepare(given.model_copy(update={"run": str(tmp_path / "other")})) as again:
        assert len(again.training.train) > 0
    assert values.read_bytes() == whole


def test_a_file_is_summed_again_only_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text(f"in {file.name}\n")
    summed: list[str] = []
    sha256 = fingerprint.durable.sha256
    monkeypatch.setattr(
        fingerprint.durable, "sha256", lambda path: (summed.append(path.name), sha256(path))[1]
    )
    memo = tmp_path / "memo" / "files.json"
    names = ["a.txt", "*.txt"]
    first = fingerprint.fingerprints(names, tmp_path, memo)
    assert summed == ["a.txt", "b.txt"], "once each, whatever names it has"
    assert fingerprint.fingerprints(names, tmp_path, memo) == first
    assert summed == ["a.txt", "b.txt"]
    files[1].write_text("other\n")
    second = fingerprint.fingerprints(names, tmp_path, memo)
    assert summed == ["a.txt", "b.txt", "b.txt"]
    assert second["a.txt"] == first["a.txt"]
    assert second["*.txt"] != first["*.txt"]
    odd_entries: list[object] = [[], {}, [{}], "sum", 3, None, [1, 2, 3, 4, "sum"], [*[1] * 9, "0" * 64]]
    own = str(files[0].resolve())
    for odd in [
        "nonsense",
        "[1]",
        "[[]]",
        "3",
        "[" * 100_000,
        *(json.dumps({own: each}) for each in odd_entries),
    ]:
        memo.write_text(odd)
        assert fingerprint.fingerprints(names, tmp_path, memo) == second, odd[:99]


def test_not_more_is_held_out_than_is_needed() -> None:
    row = Row({}, "f", 1)
    assert [Every().border(repeat(row, n)) for n in (19, 40_000, 40_001, 100_000)] == [20, 20, 21, 50]
    rows, held_out = [Row({}, "f", n) for n in range(1, 61)], list[Row]()
    assert len(list(Every().split(Every().border(rows), rows, held_out))) == 57
    assert [row.line for row in held_out] == [20, 40, 60]


def test_resuming_reads_no_training_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = translating(tmp_path, max_steps=3)
    data = given.data.model_copy(update={"valid": None, "test": None})
    given = given.model_copy(update={"data": data})
    with prepare(given) as begun:
        held = [example.row for example in begun.training.valid]
    monkeypatch.setattr(corpus, "task_rows", lambda *_, **__: pytest.fail("read again"))
    with prepare(given) as again:
        assert [example.row for example in again.training.valid] == held
    assert cache.held_out(tmp_path / ".regard" / caches(tmp_path)[0]) == held


@pytest.mark.parametrize("changed", ["vocabulary.tokenizer.json", "recipe.task.max_length", "held out"])
def test_the_name_of_encoded_data_depends_on_all_that_encodes_them(tmp_path: Path, changed: str) -> None:
    given = translating(tmp_path)
    identity = {f"data.{file}": "0" for file in given.data.train}
    name = corpus._key(given, identity | {"vocabulary.tokenizer.json": "0", "recipe.task.decode.beam": 4})
    assert name == corpus._key(given, identity | {"vocabulary.tokenizer.json": "0"})
    if changed == "held out":
        given = given.model_copy(update={"data": given.data.model_copy(update={"valid": None})})
        assert name != corpus._key(given, identity | {"vocabulary.tokenizer.json": "0"})
    else:
        assert name != corpus._key(given, identity | {"vocabulary.tokenizer.json": "0"} | {changed: "1"})
