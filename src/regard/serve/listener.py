"""uvicorn, patient within bounds: slow heads, unread answers, more connections than files may be open."""

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

from regard.errors import ServeError
from regard.serve.guard import Guard
from regard.serve.limits import Limits
from regard.serve.refused import RefusedError, busy

LOG = logging.getLogger("regard.serve")
MOST_HEADER_BYTES = 16_384
MOST_PENDING = 2048
"""Connections that the system keeps for us until we come to them."""
AT_ONCE = 8
"""Of these taken at once, before the first of them is looked at."""
OWN_FILES, FILES_OF_A_MODEL, LEAST_CONNECTIONS = 64, 8, 16


class Protocol(H11Protocol):
    """What is not HTTP is refused in JSON too; who sends a head byte by byte is not waited for, nor who does
    not read an answer, which would be kept for ever; and who asks nothing makes room when there is none."""

    silent_since = 0.0
    _patience: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.silent_since = self.loop.time()
        self._patience = self._later()
        if len(self.connections) > self._limits.connections and not self._make_room():
            self._refuse(busy("connections", self._limits.connections))

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._wait_for_ever()
        elif self._patience is None:
            self._patience = self._later()

    def on_response_complete(self) -> None:
        self.silent_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_less(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._expect_nothing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_for_ever()
        self._expect_nothing()
        super().connection_lost(exc)

    @property
    def _limits(self) -> Limits:
        guard: Any = self.config.app
        limits: Limits = guard.limits
        return limits

    def _make_room(self) -> bool:
        """Close the connection that has asked nothing for the longest time, if there is one."""
        others = (other for other in self.connections if isinstance(other, Protocol) and other is not self)
        silent = min(
            (other for other in others if other._is_silent), key=attrgetter("silent_since"), default=None
        )
        if silent is not None:
            self.connections.discard(silent)
            silent.transport.abort()
        return silent is not None

    @property
    def _is_silent(self) -> bool:
        """No request is being sent, and none being answered."""
        return self.conn.their_state is h11.IDLE and (self.cycle is None or self.cycle.response_complete)

    def _later(self) -> asyncio.TimerHandle:
        return self.loop.call_later(self._limits.head_seconds, self.transport.close)

    def _expect_less(self, n_bytes: int) -> None:
        """Than so many unread in a while, or whoever should read them has gone."""

        def look() -> None:
            left = self.transport.get_write_buffer_size()
            if left < n_bytes:
                self._expect_less(left)
            else:
                self.transport.abort()

        self._unread = self.loop.call_later(self._limits.read_seconds, look)

    def _expect_nothing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _wait_for_ever(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def send_400_response(self, msg: str) -> None:
        self._refuse(RefusedError(400, "not_http", "this is not a request in HTTP/1.1"))

    def _refuse(self, refusal: RefusedError) -> None:
        """Before there is a request that the guard could answer."""
        body = json.dumps(refusal.to_json())
        headers = {
            "Content-Type": "application/json",
            "Connection": "close",
            "Content-Length": str(len(body)),
        } | refusal.headers
        lines = [f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.transport.write("\r\n".join([*lines, "", body]).encode())
        self.transport.close()


class Listener(Server):
    """uvicorn, whose signals are ours: it would end by the signal instead of with 0."""

    def __init__(self, guard: Guard, stop_seconds: float) -> None:
        super().__init__(
            Config(
                guard,
                http=Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=AT_ONCE,
                timeout_keep_alive=10,
                timeout_graceful_shutdown=int(stop_seconds),
                h11_max_incomplete_event_size=MOST_HEADER_BYTES,
            )
        )
        logging.getLogger("uvicorn.error").setLevel(
            logging.CRITICAL
        )  # faults are noted by the guard, without texts

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn has one number for what it takes at once and for what may wait; more may wait."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(MOST_PENDING)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def within_files(limits: Limits, n_models: int) -> Limits:
    """With no more connections than this process may have files open; it asks the system for as many."""
    own = OWN_FILES + FILES_OF_A_MODEL * n_models
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + own
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = limits.connections if soft == resource.RLIM_INFINITY else min(limits.connections, soft - own)
    if room < min(LEAST_CONNECTIONS, limits.connections):
        raise ServeError(
            f"only {soft} files may be open at once here, {own + LEAST_CONNECTIONS} are needed; "
            f"raise the limit with: ulimit -n {wanted}"
        )
    return limits.model_copy(update={"connections": room})


def note_without_texts(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A fault that nobody waits for; what it says may hold what a user wrote."""
    fault = context.get("exception")
    LOG.error("fault in the server: %s", type(fault).__name__ if fault else "unknown")
