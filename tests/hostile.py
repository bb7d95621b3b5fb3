"""Requests that are wrong in every way we could think of, as bytes; and a client that sends bytes."""

import json
import random
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

ROUTES = ("/v1/translate", "/v1/classify", "/v1/explain")
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e308, 2**63, 10**400, "", "x", "\x00", "\ud800", "\u202e<b>", [], [[]],
    {}, {"a": {}}, ["x", 1], [None], "9" * 3000, ["x"] * 65, -0.0, {"$ref": "#"}, {"__class__": "x"},
)  # fmt: skip
FIELDS = ("text", "model", "decode", "stream", "attention", "packed", "nobody")
SETTINGS = (
    "beam", "n_best", "groups", "diversity", "length_penalty", "sample", "temperature", "top_k", "top_p",
    "min_p", "seed", "prefix", "must_not", "must_include", "no_repeat", "repetition_penalty", "min_length",
    "max_length", "batch_invariant", "max_ratio", "nobody",
)  # fmt: skip


def request(
    body: bytes,
    path: str = "/v1/translate",
    *,
    method: str = "POST",
    host: str = "localhost:PORT",
    length: str | None = None,
    kind: str = "application/json",
    extra: bytes = b"",
    version: str = "HTTP/1.1",
) -> bytes:
    """The bytes of a request; PORT stands for the server's."""
    said = len(body) if length is None else length
    head = f"{method} {path} {version}\r\nHost: {host}\r\nContent-Type: {kind}\r\nConnection: close\r\n"
    return head.encode("utf-8", "surrogatepass") + extra + f"Content-Length: {said}\r\n\r\n".encode() + body


def _json(rng: random.Random) -> bytes:
    fields = {field: rng.choice(VALUES) for field in rng.sample(FIELDS, rng.randint(0, 3))}
    if rng.random() < 0.5:
        fields = {"text": "一二", "decode": {rng.choice(SETTINGS): rng.choice(VALUES)}}
    return request(json.dumps(fields).encode(), rng.choice(ROUTES))


def _not_json(rng: random.Random) -> bytes:
    good = b'{"text": "\xe4\xb8\x80", "decode": {"beam": 2}}'
    deep = rng.choice((10, 1_000, 100_000))
    return request(
        rng.choice(
            (
                good[: rng.randrange(len(good))],
                b"[" * deep,
                b'{"text":' * deep + b"1" + b"}" * deep,
                b'{"text": ' + b"[" * deep + b"]" * deep + b"}",
                b'{"text": "x", "decode": {"beam": ' + b"9" * rng.choice((20, 5_000, 100_000)) + b"}}",
                b'{"text": "x", "decode": {"temperature": %s}}'
                % rng.choice((b"NaN", b"Infinity", b"-Infinity", b"1e999")),
                b'{"text": "' + bytes(rng.randrange(128, 256) for _ in range(9)) + b'"}',
                b'{"text": "\\ud800"}',
                b'{"text": "\\u0000"}',
                b'{"text": "x", "text": 5}',
                b"\xff\xfe" + good.decode().encode("utf-16-le"),
                b"\xef\xbb\xbf" + good,
                rng.randbytes(rng.randrange(300)),
                b"",
            )
        ),
        rng.choice(ROUTES),
    )


def _lengths(rng: random.Random) -> bytes:
    good = '{"text": "一"}'.encode()
    length = rng.choice(
        (
            "0",
            "3",
            str(len(good) + 5),
            "-1",
            "1e3",
            "٣",
            " ",
            "99999999999999999999",
            "+15",
            "0x0f",
            "10000000000",
        )
    )
    chunks = rng.choice(
        (
            b"f\r\n" + good + b"\r\n0\r\n\r\n",
            b"zz\r\nx\r\n",
            b"fffffffff\r\nx",
            b"-1\r\n\r\n",
            b"0\r\n\r\n",
            b"5",
        )
    )
    return rng.choice(
        (
            request(good, length=length),
            request(good, extra=b"Content-Length: 3\r\n"),
            request(good, extra=b"Transfer-Encoding: chunked\r\n"),
            request(good, extra=b"Transfer-Encoding: identity, chunked\r\n"),
            request(chunks).replace(b"Content-Length: %d" % len(chunks), b"Transfer-Encoding: chunked"),
            request(b"", extra=b"Transfer-Encoding: xchunked\r\n"),
            request(good + b"GET /metrics HTTP/1.1\r\nHost: evil\r\n\r\n", length=str(len(good))),
        )
    )


def _heads(rng: random.Random) -> bytes:
    good = '{"text": "一"}'.encode()
    return rng.choice(
        (
            request(good, extra=b"X-A: b\r\n c\r\n"),
            request(good, extra=b"X-\x00: b\r\n"),
            request(good, extra=b"X-A : b\r\n"),
            request(good, extra=b"X-A: \x00\x01\r\n"),
            request(good, extra=b"X: " + b"a" * 100_000 + b"\r\n"),
            request(good, extra=b"X: a\r\n" * 5_000),
            request(good, extra=b"Host: localhost\r\n"),
            request(good, extra=b"Content-Encoding: gzip\r\n"),
            request(good, extra=b"Expect: 100-continue\r\n"),
            request(good, extra=b"Upgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n"),
            request(good, host=rng.choice(HOSTS)),
            request(good, kind=rng.choice(CONTENT_TYPES)),
            request(good, method=rng.choice(METHODS)),
            request(good, version=rng.choice(("HTTP/0.9", "HTTP/2.0", "HTTP/1.999", "", "ICY"))),
            request(good, rng.choice(PATHS)),
            b"\r\n" * 50,
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(200),
            rng.randbytes(rng.randrange(1, 2_000)),
            request(good).replace(b"\r\n", b"\n"),
            request(good)[: rng.randrange(1, 100)],
        )
    )  # fmt: skip


HOSTS = ("", "evil", "localhost:PORT:PORT", "localhost:PORT@evil", "[::1", "\u0131")
CONTENT_TYPES = ("text/plain", "multipart/form-data", "application/xml", "", "*/*")
METHODS = ("GET", "PUT", "BREW", "TRACE", "CONNECT", "post", "", "P\x00ST")
PATHS = (
    "/v1/translate/", "//v1/translate", "/v1/../v1/translate", "/v1/%2e%2e/etc/passwd", "/%00",
    "/v1/translate%00", "/v1/translate?x=" + "a" * 5000, "http://evil/v1/translate", "*", "/\ud800",
    "/web/../../etc/passwd", "/..%5c..%5cwindows", "/v1/models/../../secret", "/é", "/%ff%fe",
    "/v1/translate#x", "/" + "a/" * 5000,
)  # fmt: skip
KINDS: tuple[Callable[[random.Random], bytes], ...] = (_json, _json, _not_json, _lengths, _heads)


def canary_request(rng: random.Random, secret: str) -> tuple[str, dict[str, Any]]:
    """One of many requests that carry a secret somewhere."""
    text = f"{rng.choice(('一', '二三', '四五六', '七八九十'))} {secret}"
    return rng.choice(
        [
            ("/v1/explain", {"model": "numbers", "text": text}),
            ("/v1/explain", {"model": "films", "text": f"good {secret}"}),
            ("/v1/translate", {"text": [text, "一二"], "attention": True}),
            ("/v1/translate", {"text": text, "stream": True}),
            ("/v1/translate", {"text": "三", "decode": {"must_not": [secret], "beam": 2}}),
            ("/v1/translate", {"text": "三", "decode": {"must_include": [secret], "beam": 2}}),
            ("/v1/translate", {"text": "三", "decode": {"prefix": secret}}),
            ("/v1/translate", {"text": "三", "model": secret}),
            ("/v1/translate", {"text": "三", secret: 1}),
            (f"/{secret}", {"text": "三"}),
        ]
    )


def malformed(count: int, seed: int = 1) -> Iterator[bytes]:
    rng = random.Random(seed)
    for _ in range(count):
        yield rng.choice(KINDS)(rng)


def send(port: int, data: bytes, wait: float = 0.25) -> bytes:
    """What the server says until it closes, or falls silent for so long."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, suppress(OSError):
        connection.sendall(data.replace(b"PORT", str(port).encode()))
        connection.settimeout(wait)
        while part := connection.recv(65536):
            answer += part
            connection.settimeout(5)
    return answer


def reset(connection: socket.socket) -> None:
    """Close it as a crashed client would."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def fault(answer: bytes) -> str | None:
    """What is wrong with an answer to a malformed request: only a refusal in JSON, or silence, will do."""
    if not answer:
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split()[1:2]
    if not status or not status[0].isdigit() or int(status[0]) >= 500:
        return f"{head[:80]!r}"
    if int(status[0]) < 400:
        return None
    try:
        error = json.loads(body)["error"]
        return None if error["code"] and error["message"] else f"{body[:80]!r}"
    except (ValueError, KeyError, TypeError):
        return f"{head[:80]!r} {body[:80]!r}"
