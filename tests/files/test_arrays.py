"""Arrays of numpy: read without unpickling, and refused before they are allocated."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from regard.errors import DataError
from regard.fields.series import Series
from regard.files import arrays as files
from regard.files.arrays import arrays
from regard.files.measurements import Measured
from regard.files.read import read_rows

VALUES = np.arange(10, dtype=np.float64).reshape(5, 2)


def test_an_array_of_steps_and_channels_is_a_series(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for table in (VALUES, np.asfortranarray(VALUES), VALUES.astype(np.int16)):
        np.save(path, table)
        (row,) = read_rows([str(path)], {"series": None}, fields={"series": Series()}, measured=Measured())
        assert row.cells["series"]["values"] == VALUES.tolist()
    np.savez(tmp_path / "a.npz", load=VALUES[:, 0])
    path = tmp_path / "a.npz"
    (row,) = read_rows([str(path)], {"series": None}, fields={"series": Series()}, measured=Measured())
    assert row.cells["series"]["values"] == VALUES[:, :1].tolist()


def test_arrays_that_belong_together_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    series = np.arange(12.0).reshape(2, 2, 3)  # examples × channels × steps
    np.savez_compressed(path, series=series, label=np.array([3, 7]))
    rows = list(read_rows([str(path)], {"series": None, "label": None}, fields={"series": Series()}))
    assert [row.cells["label"] for row in rows] == ["3", "7"]
    assert rows[1].cells["series"]["values"] == series[1].T.tolist()
    np.savez(path, x=series[:, 0], y=np.array(["up", "down"]))
    columns: dict[str, str | int | None] = {"series": "x", "label": "y"}
    rows = list(read_rows([str(path)], columns, fields={"series": Series()}))
    assert [row.cells["label"] for row in rows] == ["up", "down"]


def test_every_version_and_order_of_an_array(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, rows=VALUES, columns=np.asfortranarray(VALUES))
    found = arrays(str(path))
    assert all((found[name] == VALUES).all() for name in ("rows", "columns"))


def archive(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as found:
        found.writestr("a.npy", content)


def header(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, a=np.array([{}], object))
    with pytest.raises(DataError, match=r"a.npz: not a readable file of numpy arrays"):
        arrays(str(path))
    np.save(tmp_path / "a.npy", np.array([{}], object))
    with pytest.raises(DataError, match=r"a.npy: not a readable file of numpy arrays"):
        arrays(str(tmp_path / "a.npy"))
    archive(path, header((10**12,)))
    with pytest.raises(DataError, match=r"an array that is not what it says"):
        arrays(str(path))
    path.write_bytes(b"PK\x03\x04 and nothing")
    with pytest.raises(DataError, match=r"not a readable file of numpy arrays"):
        arrays(str(path))
    np.savez(path, a=np.zeros(0))
    with pytest.raises(DataError, match=r"array a is empty"):
        arrays(str(path))
    np.savez(path, a=np.array([1j]))
    with pytest.raises(DataError, match=r"array a holds complex128"):
        arrays(str(path))
    np.savez(path, a=VALUES, b=VALUES[:3])
    with pytest.raises(DataError, match=r"arrays of different length \(a has 5, b has 3\)"):
        list(read_rows([str(path)], {"series": "a", "label": "b"}))
    with pytest.raises(DataError, match=r"holds 2 arrays \(a, b\); save the measurements alone"):
        list(read_rows([str(path)], {"series": None}, measured=Measured()))
    np.save(tmp_path / "a.npy", np.zeros((2, 2, 2)))
    with pytest.raises(DataError, match=r"no table of numbers \(steps × channels\), but \(2, 2, 2\)"):
        list(read_rows([str(tmp_path / "a.npy")], {"series": None}, measured=Measured()))
    monkeypatch.setattr(files, "MOST_BYTES", 100)
    with pytest.raises(DataError, match=r"2 arrays of \d+ bytes; the limits are 100 arrays and 100 bytes"):
        arrays(str(path))
