"""Folders on disk: whole or absent whatever happens, and no damage goes unseen."""

import errno
import os
import random
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from regard import durable


def fill(folder: Path, text: str = "new") -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "a.txt").write_text(text)
    (folder / "b.bin").write_bytes(bytes(range(251)))
    durable.seal(folder)


def texts(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text("latin-1")
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_folder_is_what_was_filled_in(tmp_path: Path) -> None:
    durable.write_folder(tmp_path / "deep" / "x", fill)
    assert set(texts(tmp_path / "deep" / "x")) == {"inner/a.txt", "b.bin", "manifest.json"}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["x"]
    assert durable.damage(tmp_path / "deep" / "x") is None


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    place = tmp_path / "x"
    durable.write_folder(place, fill)
    durable.write_folder(place, lambda folder: void((folder / "only").write_text("1")))
    assert texts(place) == {"only": "1"}
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def void(value: object) -> None:
    pass


REFUSALS: dict[str, int] = {
    "no space": errno.ENOSPC,
    "broken": errno.EIO,
    "read-only": errno.EROFS,
    "quota": errno.EDQUOT,
    "forbidden": errno.EACCES,
}


@pytest.mark.parametrize("code", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("call", ["fsync", "rename"])
@pytest.mark.parametrize("occurrence", [1, 2, 3])
def test_a_disk_that_refuses_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, call: str, occurrence: int
) -> None:
    place = tmp_path / "x"
    durable.write_folder(place, lambda folder: fill(folder, "old"))
    before, left = texts(place), occurrence
    real: Callable[..., None] = os.fsync if call == "fsync" else os.rename

    def refusing(*arguments: object, **named: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(code, os.strerror(code))
        real(*arguments, **named)

    monkeypatch.setattr(os, call, refusing)
    if call == "rename" and occurrence == 3:
        durable.write_folder(place, fill)
        return
    with pytest.raises(OSError, match=os.strerror(code)):
        durable.write_folder(place, fill)
    assert texts(place) == before
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "x"
    durable.write_folder(place, lambda folder: fill(folder, "old"))

    def full(folder: Path) -> None:
        fill(folder)
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        durable.write_folder(place, full)
    assert durable.damage(place) is None
    assert texts(place)["inner/a.txt"] == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_file_is_replaced_or_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    durable.write_file(path, "old")
    durable.write_file(path, "新")
    assert path.read_text("utf-8") == "新"

    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="Input/output"):
        durable.write_file(path, "never")
    assert path.read_text("utf-8") == "新"
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_file_is_filled_or_stays(tmp_path: Path) -> None:
    def half(place: Path) -> None:
        place.write_bytes(b"ha")
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "x.bin"
    durable.fill_file(path, lambda place: place.write_bytes(b"whole"))
    with pytest.raises(OSError, match="No space"):
        durable.fill_file(path, half)
    assert path.read_bytes() == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["x.bin"]


def test_links_and_devices_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "far.txt")
    durable.fill_named(tmp_path / "link", lambda place: place.write_text("far"))
    durable.fill_named(tmp_path / "near.txt", lambda place: place.write_text("near"))
    durable.fill_named(Path("/dev/null"), lambda place: place.write_text("nothing"))
    assert (tmp_path / "link").is_symlink()
    assert [(tmp_path / name).read_text() for name in ("far.txt", "near.txt")] == ["far", "near"]
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_whoever_may_open_the_folder_may_read_all_its_files(tmp_path: Path, umask: int) -> None:
    """safetensors lets only the owner read what it writes, whatever the umask."""
    before = os.umask(umask)
    try:
        weights = {"w": np.zeros(3, np.float32)}
        durable.write_folder(tmp_path / "x", lambda folder: save_file(weights, folder / "model.safetensors"))
        durable.write_file(tmp_path / "y", "text")
    finally:
        os.umask(before)
    modes = [
        stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "x" / "model.safetensors", tmp_path / "y")
    ]
    assert modes == [0o666 & ~umask] * 2


def test_no_flipped_bit_and_no_cut_goes_unseen(tmp_path: Path) -> None:
    """Every file, the manifest too; which file it was is said."""
    rng = random.Random(1)
    place = tmp_path / "x"
    durable.write_folder(place, fill)
    for path in (place / "inner" / "a.txt", place / "b.bin", place / "manifest.json"):
        whole = path.read_bytes()
        for bit in sorted({rng.randrange(8 * len(whole)) for _ in range(300)}):
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(bytes(flipped))
            fault = durable.damage(place)
            assert fault is not None, f"{path.name}, bit {bit}"
            assert path.name in fault or path.name == "manifest.json"
        for length in range(0, len(whole), 7):
            path.write_bytes(whole[:length])
            assert durable.damage(place) is not None
        path.write_bytes(whole)
        assert durable.damage(place) is None


def test_a_missing_and_an_added_file_are_seen(tmp_path: Path) -> None:
    place = tmp_path / "x"
    durable.write_folder(place, fill)
    (place / "b.bin").rename(place / "c.bin")
    assert durable.damage(place) == "b.bin is missing"
    (place / "c.bin").rename(place / "b.bin")
    (place / "extra").touch()
    assert durable.damage(place) == "extra has changed since it was written"
    assert (
        durable.damage(tmp_path / "nowhere") == "manifest.json is missing or has changed since it was written"
    )


def test_a_removed_folder_is_gone_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    durable.write_folder(tmp_path / "x", fill)
    seen: list[bool] = []
    monkeypatch.setattr(durable, "reached", lambda name: seen.append((tmp_path / "x").exists()))
    durable.remove_folder(tmp_path / "x")
    assert seen == [True, False]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", [durable.write_folder, durable.fill_file])
def test_a_full_disk_says_where(
    tmp_path: Path, write: Callable[[Path, Callable[[Path], None]], None]
) -> None:
    """What write() raises names no file."""

    def full(place: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match=r"No space left on device: '.*/x'"):
        write(tmp_path / "x", full)
