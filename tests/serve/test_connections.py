"""More connections than there is room for: who asks nothing makes way, who asks is answered or told."""

import json
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from regard.errors import ServeError
from regard.serve.limits import Limits
from regard.serve.listener import within_open_files
from served import Served, sentences, served

FEW_FILES = 128


@contextmanager
def idle(server: Served, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as held:
        address = ("127.0.0.1", server.port)
        yield [held.enter_context(socket.create_connection(address, timeout=20)) for _ in range(count)]


def test_idle_connections_make_way(models: list[Path], tmp_path: Path) -> None:
    """Three times as many as this server may have files open."""
    with (
        served(models[:1], tmp_path / "log", files=FEW_FILES) as running,
        idle(running, 3 * FEW_FILES) as held,
    ):
        for text in sentences(5):
            assert running.post("/v1/translate", text=text).status == 200
        assert held[0].recv(1) == b"", "the oldest was closed"
    assert (tmp_path / "log").read_text() == ""


def test_a_kept_connection_that_asks_nothing_makes_way_too(models: list[Path], tmp_path: Path) -> None:
    with served(models[:1], tmp_path / "log", limits={"connections": 3}) as running, idle(running, 3) as held:
        for kept in held:
            kept.sendall(f"GET /health HTTP/1.1\r\nHost: localhost:{running.port}\r\n\r\n".encode())
            assert kept.recv(1000).startswith(b"HTTP/1.1 200")
        assert running.get("/health").status == 200


def test_who_asks_does_not_make_way(models: list[Path], tmp_path: Path) -> None:
    body = json.dumps({"text": "一"}).encode()
    with (
        served(models[:1], tmp_path / "log", limits={"connections": 2}) as running,
        idle(running, 2) as asking,
    ):
        head = f"POST /v1/translate HTTP/1.1\r\nHost: localhost:{running.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        for connection in asking:
            connection.sendall(head.encode())
        time.sleep(1)  # until both heads have been read; asking whether they have would take a connection
        with socket.create_connection(("127.0.0.1", running.port), timeout=20) as third:
            refusal = b"".join(iter(lambda: third.recv(10_000), b""))
        told, said = refusal.split(b"\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 429 Too Many Requests")
        assert b"Retry-After: 1" in told
        assert json.loads(said)["error"] == {
            "code": "busy",
            "message": "too many connections already (at most 2); try again in a moment",
            "limit": 2,
        }
        for connection in asking:
            connection.sendall(body)
            assert connection.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("soft", "hard", "room"),
    [(1024, 1_048_576, 4096), (1024, 1024, 944), (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 4096)],
)
def test_as_many_as_files_may_be_open(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, room: int
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    assert within_open_files(Limits(), n_models=2).connections == room
    assert asked == ([(4096 + 80, hard)] if hard > 4096 else [(1024, 1024)] if soft == 1024 else [])


def test_too_few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: None)
    with pytest.raises(ServeError, match=r"only 64 files may be open .* 88 are needed; .*: ulimit -n 4168"):
        within_open_files(Limits(), n_models=1)
