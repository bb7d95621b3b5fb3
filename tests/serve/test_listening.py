"""Streams of sound over a WebSocket, and in a request whose body is still being sent."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Message,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

import regard
from hearers import make_hearer
from served import Served, served
from sounds import RATE, spoken

WORDS = ["amber", "birch", "cedar", "delta"]
LIMITS = {"listeners": 6, "listen_idle_seconds": 2, "listen_seconds": 60, "body_bytes": 100_000}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_hearer(tmp_path_factory.mktemp("hearer") / "hearer")


@pytest.fixture(scope="module")
def hearing(run: Path, models: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served([run, models[1]], tmp_path_factory.mktemp("log") / "stderr", limits=LIMITS) as running:
        yield running


def raw(number: int, text: str = "amber birch cedar delta amber birch") -> bytes:
    return (spoken(text, number)[0] * 32767).astype("<i2").tobytes()


def answer_of(run: Path, sound: bytes) -> str:
    return "".join(part.text for part in regard.load(run).listen([sound], rate=RATE))


class Socket:
    """The plainest client of a WebSocket."""

    opened: ClassVar[list["Socket"]] = []

    def __init__(
        self, server: Served, query: str = f"?model=hearer&rate={RATE}", path: str = "/v1/listen"
    ) -> None:
        self.tcp = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        self.opened.append(self)
        self.protocol = WSConnection(ConnectionType.CLIENT)
        host = f"127.0.0.1:{server.port}"
        self.events: list[Event] = []
        self.send(Request(host=host, target=path + query))
        self.first = self.next()

    def send(self, event: Event) -> None:
        self.tcp.sendall(self.protocol.send(event))

    def next(self) -> Event:
        while not self.events:
            data = self.tcp.recv(65_536)
            self.protocol.receive_data(data or None)
            self.events += list(self.protocol.events())
        return self.events.pop(0)

    def until_closed(self) -> tuple[list[Any], CloseConnection]:
        """The JSON that comes until the server closes, and how it does."""
        found, text = [], ""
        while not isinstance(event := self.next(), CloseConnection):
            if isinstance(event, TextMessage):
                text += event.data
                if event.message_finished:
                    found.append(json.loads(text))
                    text = ""
        return found, event

    def refusal(self) -> Any:
        assert isinstance(self.first, RejectConnection)
        body = b""
        while not isinstance(event := self.next(), RejectData) or not event.body_finished:
            body += getattr(event, "data", b"")
        return self.first.status_code, json.loads(body + event.data)["error"]

    def close(self) -> None:
        self.tcp.close()


@pytest.fixture(autouse=True)
def closed_sockets() -> Iterator[None]:
    yield
    while Socket.opened:
        Socket.opened.pop().close()


def heard(server: Served, sound: bytes, step: int) -> tuple[str, CloseConnection]:
    client = Socket(server)
    assert isinstance(client.first, AcceptConnection)
    for begin in range(0, len(sound), step):
        client.send(BytesMessage(sound[begin : begin + step]))
    client.send(BytesMessage(b""))
    found, closed = client.until_closed()
    client.close()
    assert [part["is_last"] for part in found] == [False] * (len(found) - 1) + [True]
    return "".join(part["text"] for part in found), closed


@pytest.mark.parametrize("step", [1_000, 2_333, 60_000])
def test_a_stream_is_answered_as_python_answers_it(hearing: Served, run: Path, step: int) -> None:
    text, closed = heard(hearing, raw(1), step)
    assert text == answer_of(run, raw(1))
    assert text
    assert closed.code == 1000


def test_streams_side_by_side_are_not_mixed(hearing: Served, run: Path) -> None:
    sounds = [raw(number, " ".join(WORDS[number % 4 :]) + " amber") for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda sound: heard(hearing, sound, 3_001)[0], sounds))
    assert found == [answer_of(run, sound) for sound in sounds]
    assert len(set(found)) > 1


def test_one_stream_too_many_is_refused_and_a_closed_one_makes_room(hearing: Served) -> None:
    clients = [Socket(hearing) for _ in range(6)]
    assert all(isinstance(client.first, AcceptConnection) for client in clients)
    status, error = Socket(hearing).refusal()
    assert (status, error["code"]) == (429, "busy")
    clients[0].close()
    for _ in range(50):
        again = Socket(hearing)
        if isinstance(again.first, AcceptConnection):
            break
        time.sleep(0.1)
    assert isinstance(again.first, AcceptConnection)
    for client in (*clients, again):
        client.close()


def test_text_is_refused_with_a_sentence(hearing: Served) -> None:
    client = Socket(hearing)
    client.send(Message(data="hello"))
    _, closed = client.until_closed()
    assert closed.code == 1003
    assert closed.reason == "send sound as binary messages of 16-bit samples; an empty one ends it"


def test_a_message_that_is_too_large_is_refused(hearing: Served) -> None:
    client = Socket(hearing)
    client.send(BytesMessage(bytes(200_000)))
    _, closed = client.until_closed()
    assert closed.code == 1009


def test_a_silent_client_is_dropped(hearing: Served) -> None:
    client = Socket(hearing)
    client.send(BytesMessage(raw(1)[:5_000]))
    _, closed = client.until_closed()
    assert closed.code == 1008
    assert closed.reason == "no sound came for 2 seconds; begin again"


def test_a_flood_is_bounded(hearing: Served, run: Path) -> None:
    """More sound than one stream may have, as fast as it goes; others are answered meanwhile."""
    client = Socket(hearing)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(heard, hearing, raw(3), 5_000)
        try:
            for _ in range(20):
                client.send(BytesMessage(bytes(2 * RATE * 5)))
        except OSError:  # it was closed meanwhile
            pass
        found, closed = client.until_closed()
        assert other.result()[0] == answer_of(run, raw(3))
    assert closed.code == 1008
    assert found[-1]["error"]["message"] == "the stream has more than 60 seconds; begin another"


def test_a_stream_that_stops_within_a_chunk_is_forgotten(hearing: Served, run: Path) -> None:
    for number in range(10):
        client = Socket(hearing)
        assert isinstance(client.first, AcceptConnection)
        client.send(BytesMessage(raw(number)[: 701 * (number + 1)]))
        client.close()
        time.sleep(0.05)
    assert heard(hearing, raw(2), 4_000)[0] == answer_of(run, raw(2))


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("?model=hearer&rate=12", 422, "rate: give the samples a second, from 1,000 to 400,000"),
        ("?model=hearer&rate=many", 422, "rate: give the samples a second, from 1,000 to 400,000"),
        ("?model=films", 422, "the model 'films' is for /v1/classify; ask it there"),
        ("?model=nobody", 404, "no such model; there are: films, hearer"),
        ("?modell=hearer", 422, "modell: unknown; did you mean model?"),
    ],
)
def test_what_cannot_be_heard_is_refused(hearing: Served, query: str, status: int, message: str) -> None:
    found, error = Socket(hearing, query).refusal()
    assert (found, error["message"]) == (status, message)


def test_a_socket_elsewhere_is_refused(hearing: Served) -> None:
    status, error = Socket(hearing, path="/v1/models").refusal()
    assert (status, error["code"]) == (404, "not_found")


def test_another_page_may_not_listen(hearing: Served) -> None:
    tcp = socket.create_connection(("127.0.0.1", hearing.port), timeout=20)
    head = [
        "GET /v1/listen?model=hearer HTTP/1.1",
        f"Host: 127.0.0.1:{hearing.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        "Origin: https://evil.example",
    ]
    tcp.sendall("\r\n".join([*head, "", ""]).encode())
    reply = tcp.recv(65_536).decode()
    assert " 403 " in reply.splitlines()[0]
    tcp.close()


def posted(server: Served, sound: bytes, step: int, **headers: str) -> tuple[int, list[Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    blocks = (sound[begin : begin + step] for begin in range(0, len(sound), step))
    connection.request(
        "POST",
        f"/v1/listen?model=hearer&rate={RATE}",
        blocks,
        {"Content-Type": "audio/l16"} | headers,
        encode_chunked=True,
    )
    with closing(connection), connection.getresponse() as reply:
        return reply.status, [json.loads(line) for line in reply.read().splitlines()]


def test_a_body_is_answered_as_it_comes(hearing: Served, run: Path) -> None:
    sound = raw(4) * 4
    status, found = posted(hearing, sound, 999, **{"Transfer-Encoding": "chunked"})
    assert status == 200
    assert "".join(part["text"] for part in found) == answer_of(run, sound)
    assert len(found) > 5
    assert found[-1]["is_last"]


def test_a_body_of_another_kind_is_refused(hearing: Served) -> None:
    for kind in ("text/plain", "audio/wav", "application/x-www-form-urlencoded"):
        reply = hearing.ask("POST", "/v1/listen", b"abc", {"Content-Type": kind})
        assert (reply.status, reply.json["error"]["code"]) == (415, "not_sound")
