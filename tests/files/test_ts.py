"""Labelled series as the UCR and UEA archives have them."""

import gzip
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.fields.series import Series
from regard.files.read import read_rows
from regard.files.row import Row

TS = """# two channels of unequal length
@problemName Two
@timeStamps false
@univariate false
@dimensions 2
@classLabel true up down
@data
1,2,3:4,5,6:up
7,?:8,NaN:down
1.5,2:?,3:up
"""
ARFF = """@relation One

@attribute a0 numeric
@attribute a1 numeric
@attribute target {1,2}
@data
0.5,1.5,1
?,2.5,2
"""
RELATIONAL = """% comment
@relation Two
@attribute channels relational
  @attribute t1 numeric
  @attribute t2 numeric
@end channels
@attribute class {up, down}
@data
'1,2\\n3,4',up
"""


def read(path: Path, content: str) -> list[Row]:
    path.write_text(content, "utf-8")
    return list(read_rows([str(path)], {"series": None, "label": None}, fields={"series": Series()}))


def test_channels_labels_and_missing_values(tmp_path: Path) -> None:
    rows = read(tmp_path / "a.ts", TS)
    assert [(row.line, row.cells["label"]) for row in rows] == [(8, "up"), (9, "down"), (10, "up")]
    assert [row.cells["series"]["values"] for row in rows] == [
        [[1, 4], [2, 5], [3, 6]],
        [[7, 8]],
        [[1.5, None], [2, 3]],
    ]


def test_arff_of_one_channel_and_of_several(tmp_path: Path) -> None:
    rows = read(tmp_path / "a.arff", ARFF)
    assert [(row.cells["label"], row.cells["series"]["values"]) for row in rows] == [
        ("1", [[0.5], [1.5]]),
        ("2", [[None], [2.5]]),
    ]
    (row,) = read(tmp_path / "a.arff", RELATIONAL)
    assert (row.cells["label"], row.cells["series"]["values"]) == ("up", [[1, 3], [2, 4]])


def test_both_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "a.ts.gz"
    path.write_bytes(gzip.compress(TS.encode()))
    assert (
        len(list(read_rows([str(path)], {"series": None, "label": None}, fields={"series": Series()}))) == 3
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.ts", TS.replace("7,?:8,NaN:down", "7:down"), r"a.ts:9: 1 channels found, @dimensions says 2"),
        ("a.ts", TS.replace("7,?:8", "7,?,1:8"), r"a.ts:9: channels of 3, 2 steps"),
        ("a.ts", TS.replace("1,2,3:", "1,x,3:"), r"a.ts:8: step 2: 'x' is not a number"),
        ("a.ts", TS.replace("7,?:8,NaN", "?,?:?,NaN"), r"a.ts:9: the series has no value"),
        ("a.ts", TS.replace("@timeStamps false", "@timeStamps true"), r"a.ts:3: series with time stamps"),
        ("a.ts", TS.replace("@classLabel true up down", "@targetLabel true"), r"a.ts:6: targets are numbers"),
        ("a.ts", "hello\n" + TS, r"a.ts:1: 'hello' before @data; is this a .ts file"),
        ("a.ts", TS.replace("@classLabel true up down", "@classLabel false"), r"a.ts:8: 3 channels found"),
        ("a.ts", "@classLabel false\n@data\n1,2\n", r"a.ts:3: its series have no labels"),
        (
            "a.arff",
            ARFF.replace("0.5,1.5,1", "0.5,1"),
            r"a.arff:7: 2 values found, the file has 3 attributes",
        ),
        ("a.arff", ARFF.replace("@data", "nonsense\n@data"), r"a.arff:6: 'nonsense' before @data"),
    ],
)
def test_what_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path / name, content)


def test_roles_it_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "a.ts").write_text(TS, "utf-8")
    with pytest.raises(DataError, match=r"holds series and their labels, no text"):
        list(read_rows([str(tmp_path / "a.ts")], {"text": None, "label": None}))
    with pytest.raises(DataError, match=r"the label has its place in such a file"):
        list(read_rows([str(tmp_path / "a.ts")], {"series": None, "label": 2}))
