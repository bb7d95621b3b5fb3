"""Tables of measurements: wide and long, with and without a header, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.errors import DataError
from regard.fields.series import Series, SeriesSettings
from regard.files import measurements
from regard.files.columns import Column
from regard.files.measurements import Measured, Stretch
from regard.files.read import read_rows
from regard.files.row import Row

WIDE = "date,a,b\n2016-07-01 00:00,1,10\n2016-07-01 01:00,2,\n2016-07-01 02:00,3.5,NA\n"


def read(path: Path, content: str, measured: Measured | None = None, **others: Column | None) -> list[Row]:
    path.write_text(content, "utf-8")
    columns: dict[str, Column | None] = {"series": None, **others}
    return list(read_rows([str(path)], columns, fields={"series": Series()}, measured=measured or Measured()))


def only(rows: list[Row]) -> Stretch:
    (row,) = rows
    cell = row.cells["series"]
    assert isinstance(cell, Stretch)
    return cell


def test_a_wide_table_is_one_series(tmp_path: Path) -> None:
    (row,) = read(tmp_path / "a.csv", WIDE)
    cell = row.cells["series"]
    assert cell["channels"] == ["a", "b"]
    assert cell["values"] == [[1, 10], [2, None], [3.5, None]]
    assert np.diff(cell["time"]).tolist() == [3_600_000_000] * 2
    assert row.where.endswith("a.csv:2")
    json.dumps(row.cells)


def test_columns_are_chosen_by_name_or_number(tmp_path: Path) -> None:
    for values, known in ((("b",), ("a",)), ((3,), (2,))):
        cell = only(read(tmp_path / "a.csv", WIDE, Measured(values=values, known=known)))
        assert cell["channels"] == ["b"]
        assert (cell["values"], cell["known"]) == ([[10], [None], [None]], [[1], [2], [3.5]])


def test_a_table_without_a_header_and_without_time(tmp_path: Path) -> None:
    cell = only(read(tmp_path / "a.tsv", "1\t2\n3\t4\n"))
    assert (cell["channels"], cell["values"], cell["time"]) == (["1", "2"], [[1, 2], [3, 4]], None)
    dated = only(read(tmp_path / "a.csv", "2016-07-01,1\n2016-07-02,2\n"))
    assert dated["channels"] == ["2"]
    assert len(dated["time"]) == 2


LONG = "unique_id,ds,y,kind\nx,1,10,hot\ny,1,20,cold\nx,2,11,hot\ny,2,21,cold\n"


def test_series_of_a_long_table_may_be_mixed(tmp_path: Path) -> None:
    measured = Measured(id="unique_id", time="ds", values=("y",))
    rows = read(tmp_path / "a.csv", LONG, measured)
    assert [(row.cells["series"]["id"], row.cells["series"]["values"]) for row in rows] == [
        ("x", [[10], [11]]),
        ("y", [[20], [21]]),
    ]
    labelled = read(tmp_path / "a.csv", LONG, measured, label="kind")
    assert [row.cells["label"] for row in labelled] == ["hot", "cold"]
    torn = LONG.replace("y,2,21,cold", "y,2,21,hot")
    with pytest.raises(DataError, match=r"a.csv:5: series 'y' has the label 'hot' here and 'cold' before"):
        read(tmp_path / "a.csv", torn, measured, label="kind")


def test_records_of_json_and_parquet(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"date": f"2016-07-0{n}", "load": n / 2}) + "\n" for n in range(1, 4))
    cell = only(read(tmp_path / "a.jsonl", lines))
    assert (cell["channels"], cell["values"]) == (["load"], [[0.5], [1], [1.5]])
    import pyarrow
    from pyarrow import parquet

    moments = np.array(["2016-07-01", "2016-07-02"], "datetime64[ns]")
    table = pyarrow.table({"load": [1.5, None], "date": moments, "b": [2, 3]})
    parquet.write_table(table, tmp_path / "a.parquet")
    path = str(tmp_path / "a.parquet")
    (row,) = read_rows([path], {"series": None}, fields={"series": Series()}, measured=Measured())
    assert row.cells["series"]["channels"] == ["load", "b"]
    assert row.cells["series"]["values"] == [[1.5, 2], [None, 3]]
    assert row.cells["series"]["time"][0] == 1_467_331_200_000_000


def test_a_long_series_comes_in_stretches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "STRETCH", 3)
    content = "time,a\n" + "".join(f"{n},{n}\n" for n in range(7))
    cells = [row.cells["series"] for row in read(tmp_path / "a.csv", content)]
    assert [cell["values"] for cell in cells] == [[[0], [1], [2]], [[3], [4], [5]], [[6]]]
    assert [cell["goes_on"] for cell in cells] == [False, True, True]
    assert [cell["before"] for cell in cells] == [None, 2_000_000, 5_000_000]


T0, T1, T2 = "2016-07-01", "2016-07-02", "2016-07-01T00:00+01:00"
BAD: list[tuple[str, dict[str, Any], str]] = [
    (f"date,a\n{T0},1\n{T0},2\n", {}, r"a.csv:3: the time 2016-07-01 00:00:00 occurs twice"),
    (f"date,a\n{T1},1\n{T0},2\n", {}, r"a.csv:3: the time .* is before that of the row above .*; sort"),
    (f"date,a\n{T0},1\nsoon,2\n", {}, r"a.csv:3: 'soon' is no time stamp; write it like"),
    ("date,a\n7/1/2016,1\n", {"time": "date"}, r"a.csv:2: '7/1/2016' is no time stamp"),
    (f"date,a\n{T2},1\n2016-07-01T02:00+02:00,2\n", {}, r"a.csv:3: .*mixed zones .*such as UTC"),
    (f"date,a\n{T0},1\n{T1}T00:00Z,2\n", {}, r"'2016-07-02T00:00Z' has '\+00:00'.*no zone"),
    (f"date,a\n{T0},1\n3,2\n", {}, r"'3' among time stamps of another kind"),
    ("a,b\n1,2\n1,abc\n", {}, r"a.csv:3: column b: 'abc' is not a number; leave the cell empty"),
    ("a,b\n1,2\n1,inf\n", {}, r"a.csv:3: column b: 'inf' is not a finite number"),
    ("a,b\n1,2\n1,1e39\n", {}, r"column b: '1e39' is not a finite number"),
    ("a,b\n1,2\n1\n", {}, r"a.csv:3: 1 cells found, the first line has 2"),
    ("a,b\n1,2\n", {"values": ("c",)}, r"no column c; there are a, b"),
    ("1,2\n", {"values": (3,)}, r"no column 3 \(values\); its columns are 1 to 2"),
    ("1,2\n3,4\n", {"values": ("a",)}, r"no column a; there are 1, 2"),
    (f"date,a\n{T0},1\n", {"known": ("a",)}, r"no column of measurements beside date, a"),
    ("a,b\n1,2\n", {"values": ("a",), "known": ("a",)}, r"column a is asked for twice"),
    ("id,y\nx,1\n,2\n", {"id": "id"}, r"a.csv:3: column id is empty"),
]


@pytest.mark.parametrize(("content", "measured", "message"), BAD)
def test_what_is_refused(tmp_path: Path, content: str, measured: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.csv", content, Measured(**measured))


def test_all_faults_are_heard_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,x\n2,3\ny,4\n5,6\n", "utf-8")
    faults: list[DataError] = []
    fields = {"series": Series()}
    (row,) = read_rows(
        [str(path)], {"series": None}, fields=fields, measured=Measured(), refuse=faults.append
    )
    assert row.cells["series"]["values"] == [[2, 3], [5, 6]]
    assert [str(fault).split(":")[1] for fault in faults] == ["2", "4"]


def spread(path: Path, content: str, **columns: Column | None) -> list[Row]:
    path.write_text(content, "utf-8")
    return list(
        read_rows([str(path)], {"series": None, "label": None} | columns, fields={"series": Series()})
    )


def test_a_row_of_numbers_is_a_series_beside_its_label(tmp_path: Path) -> None:
    """The old form of the UCR archive, and tables with a header."""
    rows = spread(tmp_path / "a.tsv", "1\t0.5\t1.5\n2\t2.5\t3.5\n2\t2.5\tNaN\n")
    assert [row.cells["label"] for row in rows] == ["1", "2", "2"]
    assert [row.cells["series"]["values"] for row in rows] == [[[0.5], [1.5]], [[2.5], [3.5]], [[2.5]]]
    (named,) = spread(tmp_path / "a.csv", "t0,t1,class\n1,2,cat\n")
    assert (named.cells["label"], named.cells["series"]["values"]) == ("cat", [[1], [2]])
    (chosen,) = spread(tmp_path / "a.csv", "1,2,cat\n", label=3)
    assert (chosen.cells["label"], chosen.cells["series"]["values"]) == ("cat", [[1], [2]])
    (cell,) = spread(tmp_path / "a.csv", "label,series\ncat,1 2 3\n")
    assert cell.cells["series"]["values"] == [[1], [2], [3]]


def test_settings_name_the_columns() -> None:
    settings = SeriesSettings(time="t", id="i", values=("a",), known_future=("k",))
    assert Series(settings).columns == Measured("t", "i", ("a",), ("k",))
