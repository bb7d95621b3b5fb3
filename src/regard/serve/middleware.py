"""ASGI middleware: checks every request before the routes, and adds the headers of every response.

A body must be JSON, or a form where files are taken, and is read here up to its limit, so that the
application never waits for a slow client. Pages of other origins can send neither. Every failure becomes an
error in JSON.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from regard.serve import uploads
from regard.serve.access import AccessControl, Headers
from regard.serve.body import Body, Receive, Scope, too_large
from regard.serve.counts import Counts
from regard.serve.job import CLIENT
from regard.serve.limits import Limits
from regard.serve.listening import PATH as LISTEN
from regard.serve.listening import RAW, refuse_socket
from regard.serve.request_error import RequestError, stopping

Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Pairs = list[tuple[bytes, bytes]]

LOG = logging.getLogger("regard.serve")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
RESPONSE_HEADERS: Pairs = [
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
MAX_DIGITS = 18


class Middleware:
    def __init__(
        self, app: App, access: AccessControl, limits: Limits, counts: Counts, routes: frozenset[str]
    ) -> None:
        self.app, self.access, self.limits, self.counts, self.routes = app, access, limits, counts, routes
        self.sockets = frozenset({LISTEN})
        """Routes that read what is sent while it comes in."""
        self._reading: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._open_socket(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        route = scope["path"] if scope["path"] in self.routes else "other"  # no label may be a client's text
        CLIENT.set((scope.get("client") or ("",))[0])
        response, body, began = _Response(send), Body(receive), time.monotonic()
        try:
            await self._handle(scope, Headers(scope["headers"]), body, response)
        except RequestError as error:
            await body.discard()
            await response.send_error(error)
        except asyncio.CancelledError:  # by a stop
            await response.send_error(stopping())
        except Exception as fault:  # its message may hold a user's text, so it is not logged
            LOG.error("error while answering %s: %s", route, type(fault).__name__)
            await response.send_error(RequestError(500, "fault", "internal server error; please report it"))
        finally:
            self.counts.requests.labels(route, str(response.status)).inc()
            self.counts.seconds.labels(route).observe(time.monotonic() - began)

    async def _open_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The same checks; what a route of sockets refuses later, it says itself."""
        CLIENT.set((scope.get("client") or ("",))[0])
        is_known, began = scope["path"] in self.sockets, time.monotonic()
        route = scope["path"] if is_known else "other"
        status = 101
        try:
            self.access.check("GET", scope["path"], Headers(scope["headers"]))
            if not is_known:
                raise RequestError(404, "not_found", "no such path for a WebSocket; /v1/listen hears sound")
            await self.app(scope, receive, send)
        except RequestError as refusal:
            status = refusal.status
            await refuse_socket(refusal, send)
        except Exception as fault:  # its message may hold what a user said, so it is not logged
            status = 500
            LOG.error("error in a WebSocket of %s: %s", route, type(fault).__name__)
        finally:
            self.counts.requests.labels(route, str(status)).inc()
            self.counts.seconds.labels(route).observe(time.monotonic() - began)

    async def _handle(self, scope: Scope, headers: Headers, body: Body, response: "_Response") -> None:
        is_listed = headers.origin in self.access.origins
        if is_listed:  # so that the page can read errors too
            origin = headers.origin.encode()
            response.extra += [(b"access-control-allow-origin", origin), (b"vary", b"origin")]
        self.access.check(scope["method"], scope["path"], headers)
        if is_listed and scope["method"] == "OPTIONS":
            await response.send_all(204, b"", PREFLIGHT)
            return
        if scope["path"] in self.sockets and scope["method"] == "POST":
            _check_sound(headers)
            await self.app(scope, body.receive, response.send)
            return
        takes_files = scope["path"] == uploads.PATH
        limit = uploads.body_bytes(self.limits) if takes_files else self.limits.body_bytes
        _check_length(headers, body, limit)
        kind = _content_type(headers, files=takes_files) if scope["method"] == "POST" else ""
        content = await self._read(body, limit)
        if kind == uploads.FORM:
            sent = headers.only(b"content-type")
            content = await asyncio.to_thread(uploads.from_form, content, sent, self.limits)
            scope = {**scope, "headers": _as_json(scope["headers"], len(content))}
        await self.app(scope, body.replay(content), response.send)

    async def _read(self, body: Body, limit: int) -> bytes:
        reader = asyncio.current_task()
        assert reader is not None
        self._reading.add(reader)
        try:
            return await body.read(limit, self.limits.body_seconds)
        finally:
            self._reading.discard(reader)

    def stop(self) -> None:
        """Cancel requests whose bodies are still being read, as they will not be answered."""
        for reader in self._reading:
            reader.cancel()


def _check_length(headers: Headers, body: Body, limit: int) -> None:
    """Refuse two lengths, which could smuggle a request past a proxy, and one beyond the limit."""
    if b"content-length" in headers and b"transfer-encoding" in headers:
        message = "Content-Length and Transfer-Encoding exclude each other; send one"
        raise RequestError(400, "two_lengths", message)
    announced = headers.only(b"content-length") or "0"
    if not (announced.isascii() and announced.isdigit() and len(announced) <= MAX_DIGITS):
        raise RequestError(400, "bad_length", "Content-Length is not a number of bytes; send one")
    if int(announced) > limit:
        body.expect(int(announced))
        raise too_large(limit)


def _content_type(headers: Headers, *, files: bool) -> str:
    """Allow only uncompressed JSON, and forms where there may be files: nothing that grows when unpacked."""
    content_type = headers.only(b"content-type").partition(";")[0].strip().lower()
    encoding = headers.only(b"content-encoding").lower()
    allowed = ("application/json", uploads.FORM) if files else ("application/json",)
    if content_type not in allowed or encoding not in ("", "identity"):
        form = f", or a form with files ({uploads.FORM})" if files else ""
        raise RequestError(415, "not_json", f"send plain JSON, with 'Content-Type: application/json'{form}")
    return content_type


def _as_json(headers: Pairs, length: int) -> Pairs:
    """The headers of a form, as those of the JSON that it has become."""
    others = [pair for pair in headers if pair[0] not in (b"content-type", b"content-length")]
    return [*others, (b"content-type", b"application/json"), (b"content-length", str(length).encode())]


def _check_sound(headers: Headers) -> None:
    """Allow only raw samples, which no form of another page can send."""
    content_type = headers.only(b"content-type").partition(";")[0].strip().lower()
    encoding = headers.only(b"content-encoding").lower()
    if content_type not in RAW or encoding not in ("", "identity"):
        message = "send raw 16-bit samples, with 'Content-Type: audio/l16'; files go to /v1/ask"
        raise RequestError(415, "not_sound", message)


class _Response:
    """A response to the client; adds the headers that every response has."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.extra = list(RESPONSE_HEADERS)

    async def send(self, message: Scope) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], *self.extra]
        await self._send(message)

    async def send_error(self, error: RequestError) -> None:
        """Send an error and close the connection: what follows may be an unread body, not a request."""
        if self.status:
            return
        headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        headers += [(b"content-type", b"application/json"), (b"connection", b"close")]
        if error.status == 401:
            headers.append((b"www-authenticate", b'Basic realm="regard"'))
        await self.send_all(error.status, json.dumps(error.to_json()).encode(), headers)

    async def send_all(self, status: int, body: bytes, headers: Pairs) -> None:
        length = (b"content-length", str(len(body)).encode())
        await self.send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
        await self.send({"type": "http.response.body", "body": body})
