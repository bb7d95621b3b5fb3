"""Malformed requests are refused, nobody learns what another has asked, and the log says nothing."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from hostile import canary_request, fault, malformed, request, send
from served import Served


def test_malformed_requests_are_refused_and_good_ones_answered(server: Served, offline) -> None:
    expected = offline["numbers"].predict("一二三").text
    for number, data in enumerate(malformed(400), 1):
        answer = send(server.port, data)
        assert fault(answer) is None, f"{data[:200]!r} got {fault(answer)}"
        if number % 100 == 0:
            assert server.post("/v1/translate", text="一二三").json["answers"][0]["text"] == expected
    assert server.metric("regard_lost_workers_total") == 0
    assert server.log.read_text() == ""


def test_a_smuggled_request_is_not_answered(server: Served) -> None:
    inner = b"GET /metrics HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n"
    body = b"0\r\n\r\n" + inner
    smuggled = request(body, extra=b"Transfer-Encoding: chunked\r\n").replace(b"Connection: close\r\n", b"")
    answer = send(server.port, smuggled)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"two_lengths" in answer or b"not_http" in answer


@pytest.mark.parametrize(
    "name",
    ["../films", "films/../numbers", "/etc/passwd", "..\\films", "%2e%2e/films", "films\0", "FILMS", "."],
)
def test_a_model_name_is_no_path(server: Served, name: str) -> None:
    reply = server.post("/v1/explain", text="a", model=name)
    assert (reply.status, reply.code) == (404, "unknown_model")
    assert name not in reply.json["error"]["message"]


def test_a_secret_is_seen_by_nobody_else(server: Served) -> None:
    rng = random.Random(3)
    secrets = [f"canary{'abcdefghij'[number % 10]}{chr(97 + number // 10)}" for number in range(200)]
    secrets[::2] = [""] * 100

    def client(secret: str) -> bytes:
        path, fields = canary_request(rng, secret or "plain")
        return server.post(path, **fields).body

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(client, secrets))
    told = [(secret, answer) for secret, answer in zip(secrets, answers, strict=True) if b"canary" in answer]
    assert len(told) > 20  # explanations name the words of their own text
    for secret, answer in told:
        assert answer.count(b"canary") == answer.count(secret.encode())
        assert secret
    assert b"canary" not in server.get("/metrics").body
    assert server.log.read_text() == ""
