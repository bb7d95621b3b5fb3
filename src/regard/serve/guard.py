"""Who is let in, checked on every route before anything else is done.

Localhost is not private: any page in a browser can send requests to it. So the Host header must be one of
ours (a name that was rebound to this address is not), a browser's Origin must be ours or listed, and a body
must be JSON, which no form can send. Whoever listens on another address needs a key. The body is read here,
up to its limit: nothing behind the guard waits for a slow client.
"""

import base64
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from regard.serve.body import Body, Receive, Scope, too_large
from regard.serve.counts import Counts
from regard.serve.limits import Limits
from regard.serve.refused import RefusedError

Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

LOG = logging.getLogger("regard.serve")
OPEN_TO_ALL = "/health"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
EVERY_ANSWER: Headers = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
ALLOWED_TO_OTHERS: Headers = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
]


@dataclass(frozen=True)
class Door:
    """Under which names the server is called (`localhost:8000`), from which other pages, with which key."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    key: str | None = None

    def admit(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> None:
        host = _only(headers, b"host").lower()
        if host not in self.hosts:
            raise RefusedError(
                403, "host_not_allowed", "the Host header is none of this server's names; see --allow-host"
            )
        origin = self.origin(headers)
        site = _only(headers, b"sec-fetch-site")
        if origin not in ("", *self.origins) and not self._is_ours(origin, host):
            raise RefusedError(403, "origin_not_allowed", "this page may not ask here; see --allow-origin")
        if site in ("cross-site", "same-site") and origin not in self.origins:
            raise RefusedError(403, "origin_not_allowed", "this page may not ask here; see --allow-origin")
        is_preflight = scope["method"] == "OPTIONS" and origin in self.origins
        if self.key is not None and scope["path"] != OPEN_TO_ALL and not is_preflight:
            self._check_key(_only(headers, b"authorization"))

    def origin(self, headers: dict[bytes, list[bytes]]) -> str:
        return _only(headers, b"origin").lower()

    def _is_ours(self, origin: str, host: str) -> bool:
        return origin in (f"http://{host}", f"https://{host}")

    def _check_key(self, given: str) -> None:
        """`Bearer KEY`, or what a browser sends when it has asked for a password."""
        assert self.key is not None
        scheme, _, value = given.partition(" ")
        if scheme.lower() == "basic":
            try:
                value = base64.b64decode(value, validate=True).decode().partition(":")[2]
            except ValueError:
                value = ""
        if not hmac.compare_digest(value.encode("utf-8", "replace"), self.key.encode()):
            raise RefusedError(401, "key_needed", "send the server's key as 'Authorization: Bearer KEY'")


class Guard:
    def __init__(self, app: App, door: Door, limits: Limits, counts: Counts, routes: frozenset[str]) -> None:
        self.app, self.door, self.limits, self.counts, self.routes = app, door, limits, counts, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started, statuses = time.monotonic(), [0]
        headers, body = _gathered(scope["headers"]), Body(receive)
        extra = list(EVERY_ANSWER)

        async def sending(message: Scope) -> None:
            if message["type"] == "http.response.start":
                statuses[0] = message["status"]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        try:
            self.door.admit(scope, headers)
            if (origin := self.door.origin(headers)) in self.door.origins:
                extra += [(b"access-control-allow-origin", origin.encode()), (b"vary", b"origin")]
                if scope["method"] == "OPTIONS":
                    await _send(sending, 204, b"", ALLOWED_TO_OTHERS)
                    return
            self._check_length(headers, body)
            if scope["method"] == "POST":
                _check_kind(headers)
            content = await body.read(self.limits.body_bytes, self.limits.body_seconds)
            await self.app(scope, body.again(content), sending)
        except RefusedError as refusal:
            await body.discard()
            await _refuse(sending, refusal)
        except Exception as fault:  # ours; what it says may hold what a user wrote
            LOG.error("fault while answering %s: %s", self._route(scope), type(fault).__name__)
            if not statuses[0]:
                await _refuse(sending, RefusedError(500, "fault", "a fault of the server; please report it"))
        finally:
            route = self._route(scope)
            self.counts.requests.labels(route, str(statuses[0])).inc()
            self.counts.seconds.labels(route).observe(time.monotonic() - started)

    def _route(self, scope: Scope) -> str:
        """A path of ours; what else a client may have written there is nobody's name."""
        return scope["path"] if scope["path"] in self.routes else "other"

    def _check_length(self, headers: dict[bytes, list[bytes]], body: Body) -> None:
        """With two lengths a request is smuggled past a proxy; one beyond the limit is not waited for."""
        if b"content-length" in headers and b"transfer-encoding" in headers:
            raise RefusedError(400, "two_lengths", "Content-Length and Transfer-Encoding exclude each other")
        claimed = _only(headers, b"content-length")
        if claimed and not (claimed.isascii() and claimed.isdigit() and len(claimed) < 19):
            raise RefusedError(400, "bad_length", "Content-Length is not a number of bytes")
        if claimed and int(claimed) > self.limits.body_bytes:
            body.expect(int(claimed))
            raise too_large(self.limits.body_bytes)


def _check_kind(headers: dict[bytes, list[bytes]]) -> None:
    """JSON as it is: no form of another page, and nothing that grows when it is unpacked."""
    kind = _only(headers, b"content-type").partition(";")[0].strip().lower()
    coding = _only(headers, b"content-encoding").lower()
    if kind != "application/json" or coding not in ("", "identity"):
        raise RefusedError(415, "not_json", "send plain JSON, with 'Content-Type: application/json'")


def _gathered(raw: Headers) -> dict[bytes, list[bytes]]:
    headers: dict[bytes, list[bytes]] = {}
    for name, value in raw:
        headers.setdefault(name, []).append(value)
    return headers


def _only(headers: dict[bytes, list[bytes]], name: bytes) -> str:
    """The value of a header that may come once; "" when it does not come."""
    values = headers.get(name, [b""])
    if len(values) > 1:
        raise RefusedError(400, "header_twice", f"the header {name.decode()} comes twice")
    return values[0].decode("latin-1").strip()


async def _refuse(send: Send, refusal: RefusedError) -> None:
    """It ends the connection: what follows might be a body that was not read, and not a request."""
    headers = [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    headers += [(b"content-type", b"application/json"), (b"connection", b"close")]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b'Basic realm="regard"'))
    await _send(send, refusal.status, json.dumps(refusal.to_json()).encode(), headers)


async def _send(send: Send, status: int, body: bytes, headers: Headers) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})
