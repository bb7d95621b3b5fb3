"""Windows of histories: every item is learnt once; what is drawn depends on the epoch; what is held out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data import cache
from regard.data.histories import WindowedHistories
from regard.data.last_items import AtTime, LastOf
from regard.data.layout import scored
from regard.errors import DataError
from regard.files.row import Row
from regard.tasks import Recommend, RecommendConfig

LENGTHS = (2, 3, 7, 1, 23, 8, 15, 16)


def rows() -> list[Row]:
    """Item n of history h is called h.n, and comes at the time 100·n + h."""
    return [
        Row(
            {
                "user": f"u{h}",
                "items": [f"{h}.{n}" for n in range(length)],
                "times": [100.0 * n + h for n in range(length)],
            },
            "file",
            h + 1,
        )
        for h, length in enumerate(LENGTHS)
    ]


def task(**settings: Any) -> Recommend:
    return Recommend.fit(RecommendConfig(max_length=7, **settings), rows())


def layout(recommend: Recommend, folder: Path | None = None) -> WindowedHistories:
    if folder is None:
        return WindowedHistories.of(recommend, rows())
    cache.write(recommend, rows(), folder, name="rows")
    found = WindowedHistories.open(recommend, folder)
    assert found is not None
    return found


@pytest.mark.parametrize("mapped", [False, True])
def test_every_item_but_the_first_is_a_target_once(tmp_path: Path, mapped: bool) -> None:
    recommend = task()
    found = layout(recommend, tmp_path / "cache" if mapped else None)
    assert found.left_out == {"of a single item": 1}
    names = recommend.items.names
    pairs = []
    for i in range(len(found)):
        arrays = found[i].arrays
        assert recommend.size(found[i]) == tuple(found.sizes[i]) == (len(arrays["targets"]),)
        assert len(arrays["targets"]) <= 7
        assert arrays["times"].tolist() == [
            100.0 * int(n) + int(h) for h, n in _apart(names, arrays["items"])
        ]
        pairs += zip(_apart(names, arrays["items"]), _apart(names, arrays["targets"]), strict=True)
        assert found.row(i).line == int(_apart(names, arrays["items"])[0][0]) + 1
    assert all((h, n + 1) == (g, m) for (h, n), (g, m) in pairs)
    assert sorted(target for _, target in pairs) == sorted(
        (h, n) for h, length in enumerate(LENGTHS) for n in range(1, length)
    )


def _apart(names: tuple[str, ...], numbers: Any) -> list[tuple[int, int]]:
    return [(int(h), int(n)) for h, n in (names[number].split(".") for number in numbers)]


def test_hidden_items_are_drawn_anew_in_every_epoch_and_alike_again() -> None:
    recommend = task(objective="masked", mask_share=0.4)
    found = layout(recommend)
    assert sum(size for (size,) in found.sizes.tolist()) == sum(length for length in LENGTHS if length > 1)
    epochs = [found.in_epoch(5, epoch) for epoch in (0, 1, 0)]
    drawn = [[epoch[i].arrays for i in range(len(found))] for epoch in epochs]
    first, second, again = ([arrays["items"].tolist() for arrays in epoch] for epoch in drawn)
    assert first == again != second
    for arrays in drawn[0]:
        hidden = arrays["items"] == recommend.mask
        assert hidden.any()
        assert (hidden == (arrays["targets"] >= 0)).all()


def test_about_as_many_are_hidden_as_shall_be() -> None:
    from regard.tasks.recommend import ONLY_LAST, hide

    rng = np.random.default_rng(0)
    n, share, draws = 31, 0.3, 4000
    hidden = np.stack([hide(n, share, rng) for _ in range(draws)])
    only_last = hidden[:, :-1].sum(1) == 0
    assert only_last.mean() == pytest.approx(ONLY_LAST, abs=0.02)
    assert hidden[~only_last].mean() == pytest.approx(share, abs=0.01)
    assert hidden[only_last, -1].all()


def test_what_is_scored_is_the_last_item_of_each() -> None:
    recommend = task()
    examples = scored(recommend, rows(), "rows")
    for row, example in zip(rows(), examples, strict=True):
        assert [recommend.items.names[n] for n in example.arrays["items"]] == row.cells["items"][:-1]
        assert recommend.items.names[int(example.arrays["target"][0])] == row.cells["items"][-1]
        assert len(example.arrays["times"]) == len(row.cells["items"]) - 1


def test_the_last_two_items_are_held_out() -> None:
    held_out: list[Row] = []
    last = LastOf()
    border = last.border(rows())
    train = list(last.split(border, rows(), held_out))
    test = list(last.test(border, rows()))
    assert [len(row.cells["items"]) for row in train] == [n - 2 if n > 2 else n for n in LENGTHS]
    assert [len(row.cells["items"]) for row in held_out] == [n - 1 for n in LENGTHS if n > 2]
    assert [len(row.cells["items"]) for row in test] == [n for n in LENGTHS if n > 2]
    assert all(len(row.cells["times"]) == len(row.cells["items"]) for row in (*train, *held_out, *test))
    for row in (*train, *held_out, *test):
        h = row.line - 1
        assert row.cells["items"] == rows()[h].cells["items"][: len(row.cells["items"])]


def test_of_many_histories_some_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.data import last_items

    monkeypatch.setattr(last_items, "MOST_VALIDATED", 3)
    monkeypatch.setattr(last_items, "MOST_TESTED", 5)
    held_out: list[Row] = []
    train = list(LastOf().split(len(LENGTHS), rows(), held_out))
    assert len(train) == len(LENGTHS)
    assert [row.line for row in held_out] == [7]
    assert [row.line for row in LastOf().test(len(LENGTHS), rows())] == [3, 5, 7]


def test_nothing_behind_a_moment_is_learnt_before_it() -> None:
    held_out: list[Row] = []
    split = AtTime((0.5, 0.8))
    first, second = split.border(rows())
    times = sorted(time for row in rows() for time in row.cells["times"])
    assert sum(time < first for time in times) == pytest.approx(0.5 * len(times), abs=1)
    train = list(split.split((first, second), rows(), held_out))
    test = list(split.test((first, second), rows()))
    assert max(time for row in train for time in row.cells["times"]) < first
    for row, begin, end in [(row, first, second) for row in held_out] + [
        (row, second, np.inf) for row in test
    ]:
        *before, target = row.cells["times"]
        assert before
        assert before[-1] < begin <= target < end
    whole = {row.line: row.cells["times"] for row in rows()}
    asked = {line for line, at in whole.items() if at[0] < second <= at[-1]}
    assert {row.line for row in test} == asked


def test_without_times_nothing_is_cut_at_one() -> None:
    row = Row({"user": "u", "items": ["a"]}, "ratings.csv", 1)
    with pytest.raises(DataError, match=r"ratings.csv: has no column of times.*data.columns.time, or set"):
        AtTime().border([row])
