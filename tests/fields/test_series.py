"""Series: cells in all their forms, gaps, statistics, and the input that reads one as a whole."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.errors import CheckpointError, DataError
from regard.fields.field import Coded
from regard.fields.series import Series, SeriesSettings
from regard.fields.steps import Value, bridge, interpolated
from regard.files.measurements import Stretch
from regard.files.stamps import SECOND

DAY = 86_400 * SECOND
NAN = float("nan")


def value(values: Any, *, times: Any = None, **changes: Any) -> Value:
    table_TC = np.array(values, np.float32).reshape(len(values), -1)
    channels = tuple(str(n) for n in range(1, table_TC.shape[1] + 1))
    at_T = None if times is None else np.array(times, np.int64) * DAY
    plain = Value(table_TC, np.zeros((len(table_TC), 0), np.float32), at_T, "", None, False, 0, channels, "")
    return plain._replace(**changes)


def clean(cell: object, **settings: Any) -> Stretch:
    return Series(SeriesSettings(**settings)).clean(cell, "input 1", "the series")


@pytest.mark.parametrize(
    "cell",
    [
        [1, "2.5", None],
        [[1, 2.5, None]],
        "1, 2.5, NaN, 4"[:-3],
        "1 2.5 ?",
        {"load": [1, 2.5, None]},
        "load\n1\n2.5\n\nNA\n",
        "load\r\n1\r\n2.5\r\nNA",
    ],
)
def test_a_series_may_be_given_in_many_ways(cell: object) -> None:
    found = Series().parse(clean(cell), "input 1").values_TC
    filled = np.full((3, 1), NAN, np.float32)
    filled[:2, 0] = 1, 2.5
    assert np.array_equal(found, filled[: len(found)], equal_nan=True)
    assert len(found) >= 2


def test_channels_and_tables() -> None:
    assert clean([[1, 2], [3, 4]])["values"] == [[1, 3], [2, 4]]
    table = clean("date\ta\tb\n2016-07-01\t1\t3\n2016-07-02\t2\t4\n")
    assert (table["channels"], table["values"]) == (["a", "b"], [[1, 3], [2, 4]])
    assert np.diff(table["time"]).tolist() == [DAY]
    columns = {"a": [1, 2], "date": ["2016-07-01", "2016-07-02"], "b": [3, 4]}
    assert clean(columns)["values"] == table["values"]
    assert clean(columns, known_future=["b"])["known"] == [[3], [4]]


BAD: list[tuple[object, str]] = [
    (5, r"the series is 5; give a list of numbers"),
    ([], r"the series is \[\]; give a list"),
    ([1, [2]], r"the channels of the series are not lists of one length"),
    ([[1, 2], [3]], r"the channels of the series are not lists of one length"),
    ([1, "x"], r"step 2 of the series: 'x' is not a number"),
    ([1, float("inf")], r"step 2 of the series: inf is not a finite number"),
    ({"a": [1], "b": [1, 2]}, r"must be lists of the same length by column"),
    ({"a": 1}, r"must be lists of the same length by column"),
    ({}, r"must be lists of the same length by column"),
    ("", r"the series holds no row"),
    ("a,b\n1,2\n3\n", r"1 cells found, the first line has 2"),
    ("time,a\n2,1\n1,2\n", r"sort the rows by time"),
    ([0.0] * 100_001, r"has 100,001 steps, the limit is 100,000"),
    ('a,"b\n1,2\n', r"not valid CSV"),
]


@pytest.mark.parametrize(("cell", "message"), BAD)
def test_what_is_refused(cell: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        clean(cell)


def test_several_series_where_one_is_meant() -> None:
    with pytest.raises(DataError, match=r"holds 2 series; give one series"):
        clean("id,y\na,1\nb,2\n", id="id")


def test_statistics_are_those_of_all_values_that_are_known() -> None:
    rng = np.random.default_rng(0)
    parts = [rng.normal(5, 3, (n, 2)).astype(np.float32) for n in (31, 1, 7)]
    parts[0][4:9, 0] = NAN
    parts[2][:, 1] = NAN
    fitted = Series().fit([value(part) for part in parts])
    whole = np.concatenate(parts).astype(np.float64)
    assert np.allclose(fitted.measured.mean, np.nanmean(whole, 0))
    assert np.allclose(fitted.measured.deviation, np.nanstd(whole, 0))
    assert fitted.longest == 31
    assert fitted.width["channels"] == 2


def test_a_constant_channel_is_divided_by_one() -> None:
    values = np.full((50, 1), 0.1, np.float32) * [1, 1e6]
    fitted = Series().fit([value(values)])
    assert fitted.measured.deviation == (1, 1)
    assert np.allclose(fitted.measured.mean, [0.1, 1e5])


def encoded(field: Series, one: Value) -> Coded:
    (coded,) = field.encode([one])
    return coded


def test_steps_that_are_missing_by_the_clock_are_put_in() -> None:
    times = [0, 1, 2, 5, 6, *range(7, 40)]
    one = value(np.arange(len(times)), times=times)
    fitted = Series().fit([one])
    coded = encoded(fitted, one)
    steps = coded.arrays["steps"][:, 0]
    assert steps[:7].tolist()[:3] == [0, 1, 2]
    assert np.isnan(steps[3:5]).all()
    assert steps[5] == 3
    assert len(steps) == 40
    assert coded.notes["filled"] == 2
    assert (np.diff(coded.notes["times"]) == DAY).all()
    assert encoded(Series().fit([value([1, 2, 3])]), value([1, 2, 3])).notes["filled"] == 0


def test_stretches_of_a_series_are_encoded_like_the_whole() -> None:
    """The gap may lie between two of them."""
    times = np.array([*range(20), *range(23, 60)])
    table = np.random.default_rng(1).normal(0, 1, (len(times), 2))
    settings = SeriesSettings(calendar=("weekday",))
    whole = value(table, times=times)
    fitted = Series(settings).fit([whole])
    expected = encoded(fitted, whole)
    for cut in (7, 20, 21):
        first = value(table[:cut], times=times[:cut])
        second = value(table[cut:], times=times[cut:], before=int(times[cut - 1]) * DAY, goes_on=True)
        assert Series(settings).fit([first, second]).clock == fitted.clock
        parts = [encoded(fitted, part) for part in (first, second)]
        for name in ("steps", "known"):
            joined = np.concatenate([part.arrays[name] for part in parts])
            assert np.array_equal(joined, expected.arrays[name], equal_nan=True)
        assert [bool(part.arrays["opens"][0]) for part in parts] == [True, False]


def test_a_gap_without_end_is_refused() -> None:
    times = [*range(50), 1_100_000]
    one = value(np.arange(51), times=times)
    with pytest.raises(DataError, match=r"1,099,950 steps are missing, where a step is 1 day"):
        Series().fit([one])


def test_what_does_not_fit_together() -> None:
    with pytest.raises(DataError, match=r"has 1 channels, others have 2"):
        Series().fit([value([[1, 2]]), value([1])])
    with pytest.raises(DataError, match=r"time stamps of another kind or zone"):
        Series().fit([value([1], times=[1]), value([1], times=[1], zone="number")])
    with pytest.raises(DataError, match=r"fields.series.calendar: the series have no dates"):
        Series(SeriesSettings(calendar=("hour",))).fit([value([1, 2])])
    with pytest.raises(DataError, match=r"the training data hold no series"):
        Series().fit([])


def test_channels_are_found_by_name_in_any_order() -> None:
    fitted = Series().fit([Series().parse(clean({"a": [1, 2], "b": [3, 5]}), "")])
    other = fitted.clean({"b": [3, 5], "other": [0, 0], "a": [1, 2]}, "input 1", "the series")
    assert fitted.parse(other, "").values_TC.tolist() == [[1, 3], [2, 5]]
    with pytest.raises(DataError, match=r"no column b; there are a, c"):
        fitted.clean({"a": [1], "c": [2]}, "input 1", "the series")
    with pytest.raises(DataError, match=r"input 1: has no channel a, which the model was trained on"):
        fitted.parse(clean({"b": [1], "c": [2]}), "input 1")
    numbered = Series().fit([value([[1, 2], [3, 4]])])
    assert numbered.parse(clean([[1], [2]]), "").values_TC.tolist() == [[1, 2]]


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    one = value(np.random.default_rng(2).normal(0, 1, (60, 2)), times=range(60))
    settings = SeriesSettings(calendar=("weekday", "month"))
    fitted = Series(settings).fit([one])
    fitted.save(tmp_path)
    assert Series(settings).load(tmp_path) == fitted
    saved = json.loads((tmp_path / "series.json").read_text())
    for damaged in (saved | {"mean": [1]}, {}, [], saved | {"clock": 3}, saved | {"channels": []}):
        (tmp_path / "series.json").write_text(json.dumps(damaged))
        with pytest.raises(CheckpointError, match=r"series.json"):
            Series(settings).load(tmp_path)


def test_gaps_of_a_whole_series_are_bridged() -> None:
    steps = np.array([[NAN, 1], [2, NAN], [NAN, NAN], [6, 4]], np.float32)
    assert interpolated(steps).tolist() == [[2, 1], [2, 2], [4, 3], [6, 4]]
    assert interpolated(np.full((2, 1), NAN, np.float32)).tolist() == [[0], [0]]
    assert np.isnan(steps).sum() == 4, "what is mapped is not written to"
    line = np.arange(6, dtype=np.float32)[:, None] ** 2
    bridge(line, 2, 4)
    assert line[:, 0].tolist() == [0, 1, 6, 11, 16, 25]
    bridge(line, 4, 6)
    assert line[4:, 0].tolist() == [11, 11]
    bridge(line, 0, 6)
    assert not line.any()


def test_the_input_of_an_encoder() -> None:
    parts = [np.arange(2 * n, dtype=np.float32).reshape(n, 2) for n in (5, 3)]
    fitted = Series().fit([value(part) for part in parts])
    many = [fitted.assemble([encoded(fitted, value(part))]).arrays for part in parts]
    assert [fitted.size(arrays) for arrays in many] == [5, 3]
    batch = fitted.collate(many)
    assert batch["lengths"].tolist() == [5, 3]
    assert np.array_equal(batch["steps"][0], parts[0])
    assert np.array_equal(batch["steps"][1, :3], parts[1])
    assert not batch["steps"][1, 3:].any()
    longer = fitted.assemble([encoded(fitted, value(np.ones((9, 2))))])
    assert len(longer.arrays["steps"]) == 5
    assert longer.notes["cut"]
    assert fitted.is_empty({"steps": np.full((2, 2), NAN)})
    assert not fitted.is_empty(many[0])


def test_a_series_may_be_scaled_by_itself() -> None:
    fitted = Series(SeriesSettings(scale="series")).fit([value([[1, 7], [3, 7], [5, 7]])])
    batch = fitted.collate([encoded(fitted, value([[10, 7], [30, 7], [50, 7]])).arrays])
    assert np.allclose(batch["steps"][0].mean(0), 0)
    assert np.allclose(batch["steps"][0].std(0), [1, 0])
    assert fitted.width["mean"] == [0, 0]


def test_what_is_left_out_becomes_a_straight_line() -> None:
    fitted = Series().fit([value(np.arange(6) ** 2)])
    coded = encoded(fitted, value(np.arange(6) ** 2))
    batch = fitted.collate([coded.arrays])
    axis = fitted.axis([], coded)
    runs = axis.runs(2, "patch")
    assert runs.labels == ("1 … 2", "3 … 4", "5 … 6")
    left = fitted.without(batch, runs, [1, 2], "blank")
    assert left["steps"][:, :, 0].tolist() == [[0, 1, 6, 11, 16, 25], [0, 1, 4, 9, 9, 9]]
    assert left["lengths"].tolist() == [6, 6]
    assert axis.runs(4, "patch", at_end=True).labels == ("1 … 2", "3 … 6")


def test_cells_that_look_like_series() -> None:
    assert Series.resembles([["1", "2"], ["3", "4", "5"]]) == 1
    assert 0.5 < Series.resembles([[["1.5"], ["2"]]]) < 1
    assert Series.resembles(["1 2", ["a"], [], [[]], 3, [True, False]]) == 0


def test_rows_and_columns_that_were_confused_are_refused() -> None:
    """A series of one channel, written as one row of many columns, is not a step of many channels."""
    field = Series().fit([value([1, 2, 3, 4])])
    rows = Stretch(clean([[step] for step in range(60)]))
    with pytest.raises(
        DataError, match=r"x: has 1 row of 60 columns, where the model reads 1; give a row for"
    ):
        field.parse(rows, "x")
