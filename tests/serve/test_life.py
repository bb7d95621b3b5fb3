"""Starting, being full, dying workers, clients that leave, and ending well."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hostile import reset
from regard.cli import app
from regard.serve.server import _host_headers as called
from regard.serve.server import _url as address
from served import Served, open_request, sentences, served, until

SLOW = {"beam": 16, "min_length": 15, "no_repeat": 0}
"""A search that takes a tiny model a moment."""
BACK = 60
"""Seconds for a new worker even on a machine that tests in parallel; bench/serve_load.py measures it."""


def refusal(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """What `regard serve` says when it does not start."""
    found = CliRunner().invoke(app, ["serve", *arguments], env=environment)
    assert found.exit_code == 2, found.output
    return " ".join(found.output.split())


def refused_start(*runs: Path) -> str:
    """What is said when a model cannot be loaded: one sentence, and no worker stays."""
    command = [sys.executable, "-m", "regard", "serve", "--port", "0", *map(str, runs)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    return found.stderr


def test_a_port_in_use(models: list[Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refusal(str(models[0]), "--port", str(port))
    assert f"--port {port}: not available on 127.0.0.1 (Address already in use)" in said
    assert "choose another" in said


def test_what_cannot_be_served(models: list[Path], tmp_path: Path) -> None:
    assert "say which runs to serve" in refusal()
    assert "no such run or model folder" in refused_start(tmp_path / "nobody")
    (tmp_path / "empty").mkdir()
    assert "not a trained model of regard" in refused_start(models[1], tmp_path / "empty")
    twin = f"{models[0]}/../numbers"
    assert "another run is called 'numbers' too" in refusal(str(models[0]), twin)


def test_other_addresses_need_a_key_and_a_name(models: list[Path], tmp_path: Path) -> None:
    run, key = str(models[0]), tmp_path / "key"
    assert "--host 0.0.0.0: others can reach this address, so the server needs a key" in refusal(
        run, "--host", "0.0.0.0"
    )
    assert "--host 192.0.2.7: others" in refusal(run, "--host", "192.0.2.7")
    key.write_text("short")
    assert "a key has at least 16" in refusal(run, "--key-file", str(key))
    key.chmod(0o646)
    assert f"everybody may write this key; let only yourself: chmod 600 {key}" in refusal(
        run, "--key-file", str(key)
    )
    key.chmod(0o600)
    assert "REGARD_KEY: a key has at least 16" in refusal(run, environment={"REGARD_KEY": "käse" * 9})
    key.write_text("long enough for a key")
    named = ("--host", "0.0.0.0", "--key-file", str(key))
    assert "give the names by which clients reach the server" in refusal(run, *named)
    keyed = ("--key-file", str(key))
    assert "--host models..example.org: not an address of this machine" in refusal(
        run, "--host", "models..example.org", *keyed
    )
    assert "--host: is empty; give an address" in refusal(run, "--host", "", *keyed)
    assert "no such file" in refusal(run, "--key-file", str(tmp_path / "nokey")).lower()


@pytest.mark.parametrize(
    "allowed",
    [
        ("--allow-host", "https://models.example.org"),
        ("--allow-host", "*"),
        ("--allow-origin", "https://app.example.org/"),
        ("--allow-origin", "app.example.org"),
        ("--allow-origin", "*"),
        ("--allow-origin", "null"),
    ],
    ids=" ".join,
)
def test_what_no_header_says_is_not_allowed_in_vain(models: list[Path], allowed: tuple[str, str]) -> None:
    assert f"{' '.join(allowed)}: not a" in refusal(str(models[0]), *allowed)


def test_the_address_told_is_one_that_is_let_in() -> None:
    for host, names, url in [
        ("127.0.0.1", (), "http://127.0.0.1:80/"),
        ("::1", ("b.org",), "http://[::1]:80/"),
        ("0.0.0.0", ("b.org", "c.org"), "http://b.org:80/"),
        ("::", ("b.org:443",), "http://b.org:443/"),
    ]:
        assert address(host, 80, names) == url
        assert url.split("/")[2] in called(host, 80, names)


def test_a_missing_library_is_named(models: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for module in ("regard.serve.server", "regard.serve.listener"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert "install them with: pip install 'regard[serve]'" in refusal(str(models[0]))


def test_limits_are_shown() -> None:
    shown = CliRunner().invoke(app, ["serve", "--show-limits"]).output
    assert "queue = 256" in shown
    assert "body_bytes = 1,000,000" in shown
    assert "texts in the queue of a model" in shown
    changed = CliRunner().invoke(app, ["serve", "--show-limits", "--limit", "queue=7"]).output
    assert "queue = 7" in changed


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ("quue=7", "--limit quue=7: unknown; did you mean queue"),
        ("queue", "--limit queue=: should be a valid integer"),
        ("queue=0", "--limit queue=0: should be greater than 0"),
        ("characters=many", "--limit characters=many: should be a valid integer"),
    ],
)
def test_a_limit_that_is_none_is_refused(models: list[Path], limit: str, sentence: str) -> None:
    assert sentence in refusal(str(models[0]), "--limit", limit)


@pytest.fixture(scope="module")
def narrow(models: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One text at a time, and few may wait."""
    limits = {"queue": 8, "batch_texts": 1, "streams": 1, "explain_bytes": 300_000, "characters": 300}
    limits |= {"head_seconds": 1, "body_seconds": 1, "read_seconds": 1}
    with served(models[:1], tmp_path_factory.mktemp("narrow") / "log", limits=limits) as running:
        yield running


def test_a_text_may_be_as_long_as_was_said(narrow: Served) -> None:
    assert narrow.post("/v1/translate", text="一" * 300, decode={"max_length": 1}).status == 200
    reply = narrow.post("/v1/translate", text="一" * 301)
    assert (reply.status, reply.code, reply.json["error"]["limit"]) == (422, "too_long", 300)


def test_a_full_queue_says_when_to_come_back(narrow: Served) -> None:
    with ThreadPoolExecutor(24) as pool:
        found = list(
            pool.map(lambda text: narrow.post("/v1/translate", text=text, decode=SLOW), sentences(48))
        )
    refused = [reply for reply in found if reply.status != 200]
    assert 0 < len(refused) < 48
    assert {(reply.status, reply.code, reply.headers["retry-after"]) for reply in refused} == {
        (429, "busy", "1")
    }
    assert narrow.post("/v1/translate", text=sentences(9)).json["error"]["limit"] == 8


def test_attention_is_admitted_by_its_bytes(narrow: Served) -> None:
    reply = narrow.post("/v1/translate", text=["一" * 16] * 4, attention=True)
    assert (reply.status, reply.code, reply.json["error"]["limit"]) == (422, "too_much_attention", 300_000)
    assert narrow.post("/v1/explain", text="一").status == 200


def test_many_explanations_at_once_take_no_more_than_is_allowed(narrow: Served) -> None:
    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(lambda text: narrow.post("/v1/explain", text=text), sentences(48)))
    told = {(reply.status, "" if reply.status == 200 else reply.code) for reply in found}
    assert told == {(200, ""), (429, "busy")}
    said = {reply.json["error"]["message"] for reply in found if reply.status == 429}
    assert any("bytes of attention already (at most 300000)" in message for message in said)
    assert narrow.post("/v1/explain", text="一").status == 200


def test_slow_clients_are_not_waited_for(narrow: Served) -> None:
    with socket.create_connection(("127.0.0.1", narrow.port)) as slow:
        slow.settimeout(5)
        slow.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: loc")
        assert slow.recv(100) == b""
    with open_request(narrow, text="一") as kept:
        heard = kept.recv(10_000)
        while not heard.endswith(b"}"):  # head and body may come apart
            heard += kept.recv(10_000)
        assert heard.startswith(b"HTTP/1.1 200")
        kept.sendall(b"GET /hea")
        kept.settimeout(5)
        assert kept.recv(100) == b""
    head = f"POST /v1/translate HTTP/1.1\r\nHost: localhost:{narrow.port}\r\nContent-Length: 9\r\n"
    with socket.create_connection(("127.0.0.1", narrow.port)) as slow:
        slow.settimeout(15)
        slow.sendall(f"{head}Content-Type: application/json\r\n\r\n{{".encode())
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")


def test_who_does_not_read_is_not_kept_for(narrow: Served) -> None:
    request = f"GET /openapi.json HTTP/1.1\r\nHost: localhost:{narrow.port}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", narrow.port)) as deaf:
        deaf.settimeout(20)
        deaf.sendall(request * 400)
        time.sleep(3)
        heard = 0
        with suppress(ConnectionResetError):
            while part := deaf.recv(1_000_000):
                heard += len(part)
        assert heard < 400 * len(narrow.get("/openapi.json").body)
    assert narrow.get("/health").status == 200


def test_who_leaves_is_not_worked_for(narrow: Served) -> None:
    before = narrow.metric("regard_dropped_texts_total")
    computed = narrow.metric("regard_batch_texts_sum")
    reset(open_request(narrow, text=sentences(8), decode=SLOW))
    until(lambda: narrow.metric("regard_waiting_texts") == 0)
    assert narrow.metric("regard_dropped_texts_total") > before
    assert narrow.metric("regard_batch_texts_sum") - computed < 8
    assert narrow.post("/v1/translate", text="一").status == 200


def test_a_left_stream_ends(narrow: Served) -> None:
    for _ in range(3):
        connection = open_request(narrow, text="一二三四五", stream=True, decode=SLOW)
        connection.recv(10)
        reset(connection)
        until(lambda: narrow.post("/v1/translate", text="一", stream=True).status == 200)
    assert narrow.log.read_text() == ""


def test_a_killed_worker_comes_back_and_the_others_serve(models: list[Path], tmp_path: Path) -> None:
    with served(models, tmp_path / "log") as running, ThreadPoolExecutor(4) as pool:
        victim = running.worker("numbers")
        asked = [
            pool.submit(running.post, "/v1/translate", text=sentences(40), decode=SLOW) for _ in range(4)
        ]
        time.sleep(0.05)
        os.kill(victim, signal.SIGKILL)
        assert running.post("/v1/classify", text="good film").status == 200
        assert {answer.result().status for answer in asked} <= {200, 503}
        until(lambda: running.get("/ready").status == 200, BACK)
        assert running.worker("numbers") not in (victim, None)
        assert running.post("/v1/translate", text="一").status == 200
        assert running.metric("regard_lost_workers_total") == 1
        idle = running.worker("films")
        os.kill(idle, signal.SIGKILL)
        until(lambda: running.get("/ready").status == 503, 5)
        until(lambda: running.get("/ready").status == 200, BACK)
    assert (tmp_path / "log").read_text() == ""


def test_a_signal_under_load_loses_no_answer(models: list[Path], tmp_path: Path) -> None:
    outcomes: list[tuple[float, int]] = []
    with served(models[:1], tmp_path / "log") as running:
        signalled = threading.Event()

        def client() -> None:
            while not signalled.is_set():
                sent = time.monotonic()
                try:
                    status = running.post("/v1/translate", text=sentences(20), decode=SLOW).status
                except OSError:
                    status = 0
                outcomes.append((sent, status))

        clients = [threading.Thread(target=client) for _ in range(6)]
        for each in clients:
            each.start()
        time.sleep(1)
        at = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        until(lambda: running.get("/ready").status == 503, 0.4)
        signalled.set()
        assert running.process.wait(12) == 0
        assert time.monotonic() - at < 10
        for each in clients:
            each.join()
    before = {status for sent, status in outcomes if sent < at - 0.1}
    assert before <= {200, 429}
    assert 200 in before
    assert {status for _, status in outcomes} <= {200, 429, 503}
    assert (tmp_path / "log").read_text() == ""


def test_a_signal_amid_a_body(models: list[Path], tmp_path: Path) -> None:
    """What has not been asked by then is refused, and nothing is said of it."""
    with served(models[:1], tmp_path / "log") as running:
        head = f"POST /v1/translate HTTP/1.1\r\nHost: localhost:{running.port}\r\nContent-Length: 99\r\n"
        with socket.create_connection(("127.0.0.1", running.port)) as slow:
            slow.settimeout(10)
            slow.sendall(f"{head}Content-Type: application/json\r\n\r\n{{".encode())
            until(lambda: running.get("/health").status == 200)
            at = time.monotonic()
            assert running.stop() == 0
            assert time.monotonic() - at < 5
            assert b'"code": "stopping"' in slow.recv(10_000)
    assert (tmp_path / "log").read_text() == ""


ENDLESS = """
import time
from pathlib import Path
from regard.serve import engine, limits, server

{hang}
def tell(url):
    print(url, flush=True)

server.serve([Path({folder!r})], port=0, limits=limits.Limits(stop_seconds=4), tell=tell)
"""
HANGS = {
    "waiting": "engine.Engine.end = lambda self: __import__('asyncio').sleep(60)",
    "blocked": "engine.Engine.end = lambda self: time.sleep(60)",
    "a thread": (
        "started = engine.Engine.stop\n"
        "async def stop(self):\n"
        "    __import__('asyncio').get_running_loop().run_in_executor(None, time.sleep, 60)\n"
        "    await started(self)\n"
        "engine.Engine.stop = stop\n"
    ),
}


@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS)
def test_it_ends_in_time_whatever_hangs(models: list[Path], hang: str) -> None:
    program = ENDLESS.format(hang=hang, folder=str(models[0]))
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http")
        process.send_signal(signal.SIGTERM)
        at = time.monotonic()
        try:
            assert process.wait(20) == 1
        finally:
            process.kill()
        assert time.monotonic() - at < 4 + 1.5


SIGNALLED = """
import asyncio, os, signal, threading
from pathlib import Path
from regard.serve.engine import Engine
from regard.serve.server import _handle_signals

async def signalled():
    engine, stop = Engine({"model": Path("nowhere")}), asyncio.Event()
    for lane in engine.lanes.values():
        lane.worker = object()
    before, deadline = engine.is_ready, threading.Timer(60, lambda: None)
    _handle_signals(engine, stop, deadline)
    os.kill(os.getpid(), signal.SIGTERM)
    await stop.wait()
    deadline.cancel()
    print(before, engine.is_ready, engine.lanes["model"].is_ready)

asyncio.run(signalled())
"""
"""In a process of its own: the browser's tests leave a running loop in theirs."""


def test_it_is_not_ready_from_the_moment_of_the_signal() -> None:
    """Not only when the stop has had its turn: a busy loop may take long to come to it."""
    said = subprocess.run([sys.executable, "-c", SIGNALLED], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["True", "False", "False"]


def test_a_second_signal_ends_it_at_once(models: list[Path], tmp_path: Path) -> None:
    with served(models[:1], tmp_path / "log") as running:
        worker = running.worker("numbers")
        connection = open_request(running, text=sentences(64), decode=SLOW)
        running.process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(2) == 1
        connection.close()
        until(lambda: not Path(f"/proc/{worker}").exists(), 5)
