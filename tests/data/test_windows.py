"""Windows: every one of every series once, cut in time, no step foretold twice, and none of them held."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from regard.data.batching import Order
from regard.data.cache import Arrays, Examples, write
from regard.data.example import Example
from regard.data.splits import Borders
from regard.data.windows import Windows
from regard.errors import DataError
from regard.fields.series import Series
from regard.files.measurements import Stretch
from regard.files.row import Row

LOOK_BACK, HORIZON = 5, 3
LENGTHS = (13, 7, 8, 31)


@dataclass(frozen=True)
class Encoder:
    layout: ClassVar[type[Examples]] = Windows
    draws: ClassVar[bool] = False
    look_back: int = LOOK_BACK
    horizon: int = HORIZON

    def encode(self, rows: Sequence[Row]) -> list[Example]:
        field = Series()
        values = [field.parse(row.cells["series"], row.where) for row in rows]
        return [Example(row, coded.arrays) for row, coded in zip(rows, field.encode(values), strict=True)]

    def unusable(self, example: Example) -> None:
        """All of them can be learnt from."""

    def size(self, example: Example) -> tuple[int]:
        return (len(example.arrays["steps"]),)

    def keep(self, example: Example) -> Arrays:
        return example.arrays

    def revive(self, row: Row, kept: Arrays) -> Example:
        return Example(row, kept)


def stretch(values: Sequence[int], name: str, *, goes_on: bool = False) -> Stretch:
    return Stretch(
        id=name, channels=["1"], values=[[value] for value in values], known=[[] for _ in values],
        time=None, zone="", goes_on=goes_on, before=None,
    )  # fmt: skip


def rows(*, parts: int = 1) -> list[Row]:
    """Series of consecutive numbers, each from a thousand of its own, perhaps in stretches."""
    found = []
    for number, n in enumerate(LENGTHS):
        cuts = np.linspace(0, n, parts + 1).astype(int)
        for begin, end in itertools.pairwise(cuts):
            values = range(1000 * number + begin, 1000 * number + end)
            cell = stretch(values, str(number), goes_on=begin > 0)
            found.append(Row({"series": cell}, "a.csv", 100 * number + int(begin)))
    return found


def steps(examples: Any) -> list[list[int]]:
    return [example.arrays["steps"][:, 0].astype(int).tolist() for example in examples]


def expected() -> list[list[int]]:
    size = LOOK_BACK + HORIZON
    return [
        list(range(1000 * number + begin, 1000 * number + begin + size))
        for number, n in enumerate(LENGTHS)
        for begin in range(n - size + 1)
    ]


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_every_window_of_every_series_once(parts: int, tmp_path: Path) -> None:
    made = Windows.of(Encoder(), rows(parts=parts))
    assert steps(made) == expected()
    assert made.n_short == 1
    write(Encoder(), rows(parts=parts), tmp_path / "cache", name="a")
    opened = Windows.open(Encoder(), tmp_path / "cache")
    assert opened is not None
    assert steps(opened) == expected()
    order = Order(opened.sizes, 3 * LOOK_BACK, 1)
    drawn = [i for batch in order.epoch(0) for i in batch]
    assert sorted(drawn) == list(range(len(opened)))
    for outside in (-1, len(opened)):
        with pytest.raises(IndexError):
            opened[outside]


def test_a_window_knows_the_row_of_what_is_foretold() -> None:
    made = Windows.of(Encoder(), rows(parts=3))
    for i, window in enumerate(expected()):
        number, first = divmod(window[LOOK_BACK], 1000)
        begins = [begin for begin in np.linspace(0, LENGTHS[number], 4).astype(int) if begin <= first]
        assert made.row(i).line == 100 * number + begins[-1]


def test_nothing_is_held_of_a_hundred_million_windows() -> None:
    n = 10**8
    arrays = {
        "steps.values": np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (n, 1), (0, 0)),
        "steps.ends": np.array([n // 3, n]),
        "opens.values": np.array([True, True]),
        "opens.ends": np.array([1, 2]),
        "context.values": np.array([0, 0]),
        "context.ends": np.array([1, 2]),
        "places": np.zeros((2, 2), int),
        "sizes": np.zeros((2, 1), int),
    }
    made = Windows(Encoder(), arrays, ["a"])
    assert len(made) == n - 2 * (LOOK_BACK + HORIZON - 1)
    assert made.sizes.strides == (0, 0)
    last = made[len(made) - 1]
    assert made.origin(len(made) - 1) == n - HORIZON
    assert last.arrays["steps"].shape == (LOOK_BACK + HORIZON, 1)


def test_series_that_are_too_short() -> None:
    short = [Row({"series": stretch(range(7), "a")}, "a.csv", 1)]
    with pytest.raises(DataError, match=r"a.csv: the longest series has 7 steps, but a window has 8"):
        Windows.of(Encoder(), short).refuse_unfit("a.csv")
    Windows.of(Encoder(), rows()).refuse_unfit("a.csv")


def targets(examples: Any) -> list[int]:
    return sorted({step for window in steps(examples) for step in window[LOOK_BACK:]})


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize(
    "borders",
    [Borders(LOOK_BACK), Borders(LOOK_BACK, shares=(0.5, 0.3, 0.2)), Borders(LOOK_BACK, rows=(3, 2, 1))],
)
def test_borders_share_out_all_steps_and_foretell_none_twice(borders: Borders, parts: int) -> None:
    whole = rows(parts=parts)
    border = borders.border(whole)
    n_parts = len(borders.rows or borders.shares)
    split = [list(borders.part(number, border, whole)) for number in range(n_parts)]
    for number, n in enumerate(LENGTHS):
        if borders.rows:
            sizes = list(borders.rows)
        else:
            ends = [round(n * sum(borders.shares[: at + 1])) for at in range(n_parts)]
            sizes = np.diff([0, *ends]).tolist()
        begin = 1000 * number
        for part, size in zip(split, sizes, strict=True):
            mine = [row.cells["series"] for row in part if row.cells["series"]["id"] == str(number)]
            values = [int(value) for cell in mine for (value,) in cell["values"]]
            context = sum(cell["context"] for cell in mine)
            looked = min(LOOK_BACK, begin - 1000 * number)
            assert context == looked
            assert values == list(range(begin - looked, begin + size))
            assert [cell["goes_on"] for cell in mine] == [False] + [True] * (len(mine) - 1)
            begin += size
    scored = [set(targets(Windows.of(Encoder(), part))) for part in split]
    assert all(not first & second for first, second in itertools.pairwise(scored))


def test_what_is_held_out_is_the_second_part() -> None:
    borders, whole = Borders(LOOK_BACK), rows(parts=2)
    border = borders.border(whole)
    held: list[Row] = []
    train = list(borders.split(border, whole, held))
    assert train == list(borders.part(0, border, whole))
    assert held == list(borders.part(1, border, whole))


def test_the_first_scored_step_is_the_first_after_the_border() -> None:
    """Also where steps are missing just there: they belong to what is scored."""
    borders = Borders(LOOK_BACK, rows=(20, 11))
    whole = rows()[3:]
    valid = Windows.of(Encoder(), borders.part(1, borders.border(whole), whole))
    assert targets(valid) == list(range(3020, 3031))
    assert len(valid) == 11 - HORIZON + 1


def test_times_go_on_across_stretches() -> None:
    cell = stretch(range(10), "a")
    cell["time"] = [10 * step for step in range(10)]
    later = stretch(range(10, 20), "a", goes_on=True)
    later |= {"time": [10 * step for step in range(10, 20)], "before": 90}
    whole = [Row({"series": Stretch(each)}, "a.csv", n) for n, each in enumerate((cell, later))]
    borders = Borders(LOOK_BACK, rows=(12, 5))
    train, valid = (list(borders.part(number, borders.border(whole), whole)) for number in (0, 1))
    assert [row.cells["series"]["before"] for row in train] == [None, 90]
    assert [row.cells["series"]["before"] for row in valid] == [None, 90]
    assert [row.cells["series"]["time"][0] for row in valid] == [70, 100]


def test_more_rows_than_there_are() -> None:
    with pytest.raises(
        DataError, match=r"a.csv: series 1 has 7 rows, but task.split needs 12; lower its numbers"
    ):
        Borders(LOOK_BACK, rows=(10, 2)).border(rows())
