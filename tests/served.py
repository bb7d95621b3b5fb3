"""A real server in a process of its own, small models for it, and the plainest client there is."""

import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

import regard
from small_runs import CLASSIFY, NUMBERS, RECIPE, write_recipe

JSON = {"Content-Type": "application/json"}


def make_models(folder: Path) -> list[Path]:
    """A translator and a classifier whose random weights answer different texts differently."""
    paths = []
    torch.manual_seed(0)
    unlike = RECIPE.replace("beam = 2", "beam = 2, no_repeat = 1")
    for name, text in (("numbers", unlike), ("films", CLASSIFY)):
        (folder / f"data-{name}").mkdir(parents=True)
        trained = regard.train(regard.Recipe.read(write_recipe(folder / f"data-{name}", text)), quiet=True)
        with torch.no_grad():
            for parameter in trained.model.parameters():
                if parameter.ndim > 1:
                    parameter.copy_(torch.randn_like(parameter))
        trained.save(folder / name)
        paths.append(folder / name)
    return paths


def sentences(count: int) -> list[str]:
    """Texts in the translator's alphabet, all different."""
    signs = list(NUMBERS)
    return ["".join(signs[int(digit)] for digit in f"{number:03d}"[::-1]) for number in range(count)]


@dataclass
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        code: str = self.json["error"]["code"]
        return code

    @property
    def events(self) -> list[tuple[str, Any]]:
        """Of a stream: names and data."""
        blocks = self.body.decode().strip().split("\n\n")
        pairs = [block.split("\n") for block in blocks]
        return [
            (name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in pairs
        ]


class Served:
    def __init__(self, process: "subprocess.Popen[str]", port: int, log: Path) -> None:
        self.process, self.port, self.log = process, port, log

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            found = connection.getresponse()
            return Reply(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, None, headers)

    def post(self, path: str, headers: dict[str, str] | None = None, **fields: Any) -> Reply:
        return self.ask("POST", path, json.dumps(fields).encode(), JSON | (headers or {}))

    def worker(self, model: str) -> int | None:
        """The process id of a model's worker."""
        for status in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                words = status.with_name("cmdline").read_bytes().decode().strip("\0").split("\0")
                parent = int(status.read_text().rpartition(")")[2].split()[1])
                if parent == self.process.pid and Path(words[-1]).name == model:
                    return int(status.parent.name)
        return None

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = self.get("/metrics").body.decode().splitlines()
        return sum(
            float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name}{{", f"{name} "))
        )

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


def open_request(server: Served, **fields: Any) -> socket.socket:
    """To translate; whoever has the connection may leave before the answer."""
    body = json.dumps(fields).encode()
    connection = socket.create_connection(("127.0.0.1", server.port))
    head = (
        f"POST /v1/translate HTTP/1.1\r\nHost: localhost:{server.port}\r\nContent-Type: application/json\r\n"
    )
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


@contextmanager
def served(
    runs: list[Path],
    log: Path,
    *options: str,
    limits: dict[str, Any] | None = None,
    environment: dict[str, str] | None = None,
    files: int | None = None,
) -> Iterator[Served]:
    """`regard serve` on a free port until the end of the block; what it writes stands in `log`.

    With `files` it may have so many open at once and no more.
    """
    command = [sys.executable, "-m", "regard", "serve", *map(str, runs), "--port", "0", *options]
    for name, number in (limits or {}).items():
        command += ["--limit", f"{name}={number}"]
    with log.open("w") as sink:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | (environment or {}),
            preexec_fn=files and partial(resource.setrlimit, resource.RLIMIT_NOFILE, (files, files)),
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "serving" in line, f"{line}{log.read_text()}"
            yield Served(process, int(line.rsplit(":", 1)[1].strip().strip("/")), log)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            process.stdout.close()


def until(true: Any, seconds: float = 15) -> float:
    """How long it took to become true."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < seconds, "it never became true"
        time.sleep(0.05)
    return time.monotonic() - began
