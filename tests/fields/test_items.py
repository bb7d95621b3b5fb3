"""A catalogue keeps its numbers, and says what it does not know."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.errors import CheckpointError, DataError
from regard.fields.field import Coded
from regard.fields.items import Items
from regard.files.catalogue import Described, catalogue

HISTORIES = [["b", "a", "1.0"], ["a", "007"], ["a", "b", "an item"]]


def fitted() -> Items:
    return Items(described={"a": Described("Alien (1979)", "horror")}).fit(HISTORIES)


def test_the_most_frequent_come_first_and_equals_by_name() -> None:
    items = fitted()
    assert items.names == ("a", "b", "007", "1.0", "an item")
    assert items.counts == (3, 2, 1, 1, 1)
    assert items.width == {"items": 5}


def test_saved_and_loaded(tmp_path: Path) -> None:
    items = fitted()
    items.save(tmp_path)
    assert Items().load(tmp_path) == items


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"items": ["a", "a"], "counts": [1, 1], "described": {}}',
        '{"items": ["a"], "counts": [1, 2], "described": {}}',
        '{"items": ["a"], "counts": ["many"], "described": {}}',
    ],
)
def test_a_damaged_catalogue_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "catalogue.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"catalogue\.json: (the catalogue cannot be read|should hold)"):
        Items().load(tmp_path)


@pytest.mark.parametrize(
    ("cell", "items"),
    [("a  007 1.0", ["a", "007", "1.0"]), (["an item", 7, 1.0], ["an item", "7", "1.0"]), ("", [])],
)
def test_how_a_history_is_given(cell: Any, items: list[str]) -> None:
    assert Items().clean(cell, "input 1", "the items") == items


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        (7, "the items is a number; it must be a list of items, the oldest first"),
        (["a", None], "item 2 of the items is null"),
        (["a", ""], "item 2 of the items is empty"),
        ([["a"]], "item 1 of the items is an array"),
        (["a"] * 10_001, "10,001 items, the limit is 10,000"),
    ],
)
def test_what_is_no_history(cell: Any, fault: str) -> None:
    with pytest.raises(DataError, match=fault):
        Items().clean(cell, "input 1", "the items")


def test_on_a_command_line() -> None:
    assert Items().typed("a b", "items") == "a b"
    assert Items().typed('["an item", "b"]', "items") == ["an item", "b"]


def test_unknown_items_are_told() -> None:
    items = fitted()
    (coded,) = items.encode([["x", "b", "y", "a"]])
    assert coded.arrays["items"].tolist() == [-1, 1, -1, 0]
    assert coded.notes["unknown"] == ["x", "y"]
    assert items.read(coded.arrays)["items"].tolist() == [1, 0]
    items.refuse_strange(["x", "a"], "input 1")
    with pytest.raises(
        DataError, match=r"input 1: item 'an itm' is not in the catalogue.*did you mean an item"
    ):
        items.refuse_strange(["an itm"], "input 1")
    with pytest.raises(DataError, match="none of its 2 items is in the catalogue"):
        items.refuse_strange(["x", "y"], "input 1")
    with pytest.raises(DataError, match="the history is empty; give at least one item"):
        items.refuse_strange([], "input 1")


def test_the_end_of_a_long_history_is_read() -> None:
    items = fitted().alone(3)
    arrays = {"items": np.array([0, 1, -1, 2, 3]), "times": np.arange(5.0)}
    assert items.read(arrays)["items"].tolist() == [1, 2, 3]
    assert items.read(arrays)["times"].tolist() == [1.0, 3.0, 4.0]
    assert items.size(arrays) == items.most == 3
    assert items.axis([], Coded(arrays)).labels == ("b", "007", "1.0")
    assert fitted().axis([], Coded({"items": np.array([0, 5])})).labels == ("Alien (1979)", "?")


def test_each_item_is_left_out_in_turn() -> None:
    items = fitted()
    arrays = {"items": np.array([0, 1, 3]), "times": np.array([5.0, 6.0, 9.0])}
    batch = items.collate([arrays])
    shorter = items.without(batch, items.axis([], Coded(arrays)), [0, 2], "remove")
    assert shorter["items"].tolist() == [[1, 3], [0, 1]]
    assert shorter["times"].tolist() == [[6.0, 9.0], [5.0, 6.0]]
    assert shorter["lengths"].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("movies.dat", "a::Alien, the first (1979)::Horror|SF\nb::Brazil::\n"),
        ("movies.csv", 'title,movieId,genres\n"Alien, the first (1979)",a,Horror|SF\nBrazil,b,\n'),
        ("movies.tsv", "a\tAlien, the first (1979)\nb\tBrazil\nb\tAnother\n"),
        (
            "movies.jsonl",
            '{"asin": "a", "title": "Alien, the first (1979)"}\n{"asin": "b", "title": "Brazil"}\n',
        ),
    ],
)
def test_titles_in_any_format(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    found = catalogue(str(tmp_path / name))
    assert {item: described.title for item, described in found.items()} == {
        "a": "Alien, the first (1979)",
        "b": "Brazil",
    }
    assert found["a"].category == ("Horror|SF" if name in ("movies.dat", "movies.csv") else "")
