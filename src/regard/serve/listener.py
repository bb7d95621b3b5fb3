"""uvicorn with timeouts for slow headers and unread responses, and a limit on connections."""

import asyncio
import contextlib
import json
import logging
import resource
import socket
from collections.abc import Iterator
from http import HTTPStatus
from operator import attrgetter
from typing import Any

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from regard.errors import ServeError
from regard.serve.limits import Limits
from regard.serve.middleware import Middleware
from regard.serve.request_error import RequestError, busy

LOG = logging.getLogger("regard.serve")
MAX_HEADER_BYTES = 16_384
BACKLOG = 2048
"""Connections that the system queues until we accept them."""
ACCEPTED_AT_ONCE = 8
"""Connections accepted at once, before the first of them is handled."""
SERVER_FILES, FILES_PER_MODEL, MIN_CONNECTIONS = 64, 8, 16


class Protocol(H11Protocol):
    """HTTP/1.1 with errors in JSON, and with timeouts for slow headers and for clients that do not read.

    When there are too many connections, the one that has been idle longest is closed.
    """

    idle_since = 0.0
    _header_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        self._header_timer = self._start_header_timer()
        if len(self.connections) > self._limits.connections and not self._close_idle():
            self._send_error(busy("connections", self._limits.connections))

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_header_timer()
        elif self._header_timer is None:
            self._header_timer = self._start_header_timer()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_write_timer(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    @property
    def _limits(self) -> Limits:
        middleware: Any = self.config.app
        limits: Limits = middleware.limits
        return limits

    def _close_idle(self) -> bool:
        """Close the connection that has been idle longest; returns whether there was one."""
        others = (other for other in self.connections if isinstance(other, Protocol) and other is not self)
        idle = min((other for other in others if other._is_idle), key=attrgetter("idle_since"), default=None)
        if idle is not None:
            self.connections.discard(idle)
            idle.transport.abort()
        return idle is not None

    @property
    def _is_idle(self) -> bool:
        """True if no request is being sent or answered."""
        return self.conn.their_state is h11.IDLE and (self.cycle is None or self.cycle.response_complete)

    def _start_header_timer(self) -> asyncio.TimerHandle:
        return self.loop.call_later(self._limits.head_seconds, self.transport.close)

    def _start_write_timer(self, n_bytes: int) -> None:
        """Abort the connection unless the client reads some of the buffered bytes in time."""

        def check() -> None:
            left = self.transport.get_write_buffer_size()
            if left < n_bytes:
                self._start_write_timer(left)
            else:
                self.transport.abort()

        self._write_timer = self.loop.call_later(self._limits.read_seconds, check)

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def send_400_response(self, msg: str) -> None:
        self._send_error(RequestError(400, "not_http", "this is not an HTTP/1.1 request"))

    def _send_error(self, error: RequestError) -> None:
        """Send an error before there is a request that the middleware could answer."""
        body = json.dumps(error.to_json())
        headers = {
            "Content-Type": "application/json",
            "Connection": "close",
            "Content-Length": str(len(body)),
        } | error.headers
        lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.transport.write("\r\n".join([*lines, "", body]).encode())
        self.transport.close()


class Listener(Server):
    """uvicorn without its signal handlers, which would end the process by the signal instead of with 0."""

    def __init__(self, middleware: Middleware, stop_seconds: float) -> None:
        super().__init__(
            Config(
                middleware,
                http=Protocol,
                ws=WSProtocol,
                ws_max_size=middleware.limits.body_bytes,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=ACCEPTED_AT_ONCE,
                timeout_keep_alive=10,
                timeout_graceful_shutdown=int(stop_seconds),
                h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            )
        )
        logging.getLogger("uvicorn.error").setLevel(
            logging.CRITICAL
        )  # the middleware logs errors, without texts

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Enlarge the backlog, for which uvicorn uses the number of connections accepted at once."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def within_open_files(limits: Limits, n_models: int) -> Limits:
    """Reduce the connections to what the limit of open files allows, after raising it if possible."""
    reserved = SERVER_FILES + FILES_PER_MODEL * n_models
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limits.connections + reserved
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    is_unlimited = soft == resource.RLIM_INFINITY
    connections = limits.connections if is_unlimited else min(limits.connections, soft - reserved)
    if connections < min(MIN_CONNECTIONS, limits.connections):
        raise ServeError(
            f"only {soft} files may be open at once, but {reserved + MIN_CONNECTIONS} are needed; "
            f"raise the limit with: ulimit -n {needed}"
        )
    return limits.model_copy(update={"connections": connections})


def log_without_texts(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log the type of an unhandled error, but not its message, which may hold a user's text."""
    fault = context.get("exception")
    LOG.error("error in the server: %s", type(fault).__name__ if fault else "unknown")
