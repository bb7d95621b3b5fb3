"""One trainer per run folder, also after a crash."""

import errno
import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from regard.errors import RunError
from regard.runs.lock import locked


def test_the_second_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    with locked(tmp_path):
        for _ in range(20):
            with (
                pytest.raises(RunError, match=rf"process {os.getpid()} on this machine is training here"),
                locked(tmp_path),
            ):
                raise AssertionError("both hold it")
    with locked(tmp_path):
        pass


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with locked(tmp_path):
            time.sleep(60)
        os._exit(0)
    while not (tmp_path / "lock").exists() or not (tmp_path / "lock").read_text():
        time.sleep(0.01)
    with pytest.raises(RunError, match=f"process {child}"), locked(tmp_path):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert json.loads((tmp_path / "lock").read_text())["pid"] == child, "the file is still there"
    with locked(tmp_path):
        pass


def test_another_machine_is_believed(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text('{"pid": 7, "host": "elsewhere"}')
    with (
        pytest.raises(
            RunError, match=r"process 7 on elsewhere is training here; if it has ended, delete .*lock"
        ),
        locked(tmp_path),
    ):
        pass
    assert json.loads((tmp_path / "lock").read_text())["host"] == "elsewhere"
    for text in ("", "{", "[]", json.dumps({"pid": 1, "host": socket.gethostname()})):
        (tmp_path / "lock").write_text(text)
        with locked(tmp_path):
            pass


def test_a_folder_that_stays_empty_goes_again(tmp_path: Path) -> None:
    with locked(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert not (tmp_path / "a" / "b").exists()


def test_a_place_that_cannot_be_a_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(RunError, match=r"file: cannot be written \(File exists\); choose"),
        locked(tmp_path / "file"),
    ):
        pass


def test_a_full_disk_is_said_and_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with (
        pytest.raises(RunError, match=r"run: cannot be written \(No space left on device\); make room, or"),
        locked(tmp_path / "run"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
