"""What is checked on every route before anything is done for it, and what every answer carries.

A body must be JSON, which no form of another page can send, and is read here, up to its limit: nothing behind
the guard waits for a slow client. Whatever goes wrong becomes an error in JSON.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from regard.serve.body import Body, Receive, Scope, too_large
from regard.serve.counts import Counts
from regard.serve.door import Door, Headers
from regard.serve.limits import Limits
from regard.serve.refused import RefusedError, stopping

Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Pairs = list[tuple[bytes, bytes]]

LOG = logging.getLogger("regard.serve")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
EVERY_ANSWER: Pairs = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
PREFLIGHT: Pairs = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
]
MOST_DIGITS = 18


class Guard:
    def __init__(self, app: App, door: Door, limits: Limits, counts: Counts, routes: frozenset[str]) -> None:
        self.app, self.door, self.limits, self.counts, self.routes = app, door, limits, counts, routes
        self._reading: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        route = scope["path"] if scope["path"] in self.routes else "other"  # what a client writes is no name
        answer, body, began = _Answer(send), Body(receive), time.monotonic()
        try:
            await self._pass(scope, Headers(scope["headers"]), body, answer)
        except RefusedError as refusal:
            await body.discard()
            await answer.refuse(refusal)
        except asyncio.CancelledError:  # by a stop
            await answer.refuse(stopping())
        except Exception as fault:  # ours; what it says may hold what a user wrote
            LOG.error("fault while answering %s: %s", route, type(fault).__name__)
            await answer.refuse(RefusedError(500, "fault", "a fault of the server; please report it"))
        finally:
            self.counts.requests.labels(route, str(answer.status)).inc()
            self.counts.seconds.labels(route).observe(time.monotonic() - began)

    async def _pass(self, scope: Scope, headers: Headers, body: Body, answer: "_Answer") -> None:
        is_listed = headers.origin in self.door.origins
        if is_listed:  # it may read why it is refused, too
            answer.extra += [(b"access-control-allow-origin", headers.origin.encode()), (b"vary", b"origin")]
        self.door.admit(scope["method"], scope["path"], headers)
        if is_listed and scope["method"] == "OPTIONS":
            await answer.whole(204, b"", PREFLIGHT)
            return
        self._check_length(headers, body)
        if scope["method"] == "POST":
            _check_kind(headers)
        await self.app(scope, body.again(await self._read(body)), answer.send)

    async def _read(self, body: Body) -> bytes:
        reader = asyncio.current_task()
        assert reader is not None
        self._reading.add(reader)
        try:
            return await body.read(self.limits.body_bytes, self.limits.body_seconds)
        finally:
            self._reading.discard(reader)

    def stop(self) -> None:
        """What has not been asked yet will not be answered, so its end is not waited for."""
        for reader in self._reading:
            reader.cancel()

    def _check_length(self, headers: Headers, body: Body) -> None:
        """With two lengths a request is smuggled past a proxy; one beyond the limit is not waited for."""
        if b"content-length" in headers and b"transfer-encoding" in headers:
            message = "Content-Length and Transfer-Encoding exclude each other; send one"
            raise RefusedError(400, "two_lengths", message)
        claimed = headers.only(b"content-length") or "0"
        if not (claimed.isascii() and claimed.isdigit() and len(claimed) <= MOST_DIGITS):
            raise RefusedError(400, "bad_length", "Content-Length is not a number of bytes; send one")
        if int(claimed) > self.limits.body_bytes:
            body.expect(int(claimed))
            raise too_large(self.limits.body_bytes)


def _check_kind(headers: Headers) -> None:
    """JSON as it is: no form of another page, and nothing that grows when it is unpacked."""
    kind = headers.only(b"content-type").partition(";")[0].strip().lower()
    coding = headers.only(b"content-encoding").lower()
    if kind != "application/json" or coding not in ("", "identity"):
        raise RefusedError(415, "not_json", "send plain JSON, with 'Content-Type: application/json'")


class _Answer:
    """On its way to the client; it gets the headers that all have."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.extra = list(EVERY_ANSWER)

    async def send(self, message: Scope) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], *self.extra]
        await self._send(message)

    async def refuse(self, refusal: RefusedError) -> None:
        """It ends the connection: what follows might be a body that was not read, and not a request."""
        if self.status:
            return
        headers = [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
        headers += [(b"content-type", b"application/json"), (b"connection", b"close")]
        if refusal.status == 401:
            headers.append((b"www-authenticate", b'Basic realm="regard"'))
        await self.whole(refusal.status, json.dumps(refusal.to_json()).encode(), headers)

    async def whole(self, status: int, body: bytes, headers: Pairs) -> None:
        length = (b"content-length", str(len(body)).encode())
        await self.send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
        await self.send({"type": "http.response.body", "body": body})
