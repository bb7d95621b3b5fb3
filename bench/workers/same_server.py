"""A server of regard in a process of its own, and the plainest client."""

import http.client
import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any, Self

LOG = Path("server.log")


class Server:
    """Serves until the end of the block; the command says where it listens in the first line it prints."""

    def __init__(self, command: list[str]) -> None:
        self.command = command

    def __enter__(self) -> Self:
        with LOG.open("w") as log:
            self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", said)
        if found is None:
            self.__exit__()
            raise RuntimeError(f"the server does not say where it listens: {said}{LOG.read_text()[-2000:]}")
        self.port = int(found[1])
        return self

    def __exit__(self, *fault: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, path: str, fields: dict[str, Any]) -> Any:
        """What is answered to a POST of JSON, on a connection of its own."""
        connection = self.connection()
        try:
            return asked(connection, path, fields)
        finally:
            connection.close()


def asked(connection: http.client.HTTPConnection, path: str, fields: dict[str, Any]) -> Any:
    """The same on a connection that is kept."""
    connection.request("POST", path, json.dumps(fields).encode(), {"Content-Type": "application/json"})
    found = connection.getresponse()
    body = found.read()
    if found.status != 200:
        raise RuntimeError(f"{path}: status {found.status}: {body[:500]!r}")
    return json.loads(body)
