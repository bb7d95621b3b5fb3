"""The server's life: listen, load the models, serve, and end well when told to."""

import asyncio
import contextlib
import logging
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.errors import ServeError
from regard.serve.door import Door
from regard.serve.engine import FLUSH_SECONDS, Engine, named
from regard.serve.guard import Guard
from regard.serve.http import application
from regard.serve.limits import LIMITS, Limits

LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::", "")
HOST = re.compile(r"[^\s/*@]+")
PORT = re.compile(r":\d+$")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/*@?#]+", re.IGNORECASE)
MOST_HEADER_BYTES = 16_384
NOTICE_SECONDS = 0.5
"""From the signal on so long it still listens and says 503, so that whoever balances load sees it."""


class Protocol(H11Protocol):
    """What is not HTTP is refused in JSON too; who sends a head byte by byte is not waited for, nor who does
    not read an answer, which would be kept for ever."""

    _patience: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._patience = self._later()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._wait_for_ever()
        elif self._patience is None:
            self._patience = self._later()

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
        body = b'{"error": {"code": "not_http", "message": "this is not a request in HTTP/1.1"}}'
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        self.transport.close()


class Listener(Server):
    """uvicorn, whose signals are ours: it would end by the signal instead of with 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(
    runs: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    key: str | None = None,
    allow_hosts: Sequence[str] = (),
    allow_origins: Sequence[str] = (),
    limits: Limits = LIMITS,
    tell: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until a signal; `tell` hears the address once every model answers."""
    folders = named(runs)
    _refuse_open_door(host, key, allow_hosts)
    _refuse_unmatched(allow_hosts, allow_origins)
    listening = _bound(host, port)
    port = listening.getsockname()[1]
    door = Door(_names(host, port, allow_hosts), frozenset(origin.lower() for origin in allow_origins), key)
    with listening:
        asyncio.run(
            _serve(Engine(folders, limits), listening, door, lambda: tell(_url(host, port, allow_hosts)))
        )


def _refuse_open_door(host: str, key: str | None, allow_hosts: Sequence[str]) -> None:
    if host in LOOPBACK:
        return
    if key is None:
        raise ServeError(
            f"--host {host}: others could reach it there, so it needs a key; give --key-file FILE, or put "
            "the key into the environment variable REGARD_KEY"
        )
    if host in EVERYWHERE and not allow_hosts:
        raise ServeError(
            f"--host {host}: say under which names it is called there, with --allow-host NAME (once for each)"
        )


def _refuse_unmatched(allow_hosts: Sequence[str], allow_origins: Sequence[str]) -> None:
    """What no header ever says would be allowed in vain."""
    for name in allow_hosts:
        if not HOST.fullmatch(name):
            raise ServeError(
                f"--allow-host {name}: write a name as addresses have it, for example models.example.org"
            )
    for origin in allow_origins:
        if not ORIGIN.fullmatch(origin):
            raise ServeError(
                f"--allow-origin {origin}: write a page's scheme and host without a path, "
                "for example https://app.example.org (once for each)"
            )


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise ServeError(f"--host {host}: no such address here ({error.strerror})") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise ServeError(
            f"--port {port}: cannot be had on {host} ({error.strerror}); choose another, or stop what uses it"
        ) from None
    return listening


def _names(host: str, port: int, allow_hosts: Sequence[str]) -> frozenset[str]:
    """As they stand in a Host header: with the port, and without where it goes without saying."""
    own = LOOPBACK if host in LOOPBACK else () if host in EVERYWHERE else (host,)
    names = {f"[{name}]" if ":" in name else name.lower() for name in own}
    given = {name.lower() for name in allow_hosts}
    without = names if port == 80 else set()
    return frozenset({f"{name}:{port}" for name in names | given} | given | without)


def _url(host: str, port: int, allow_hosts: Sequence[str]) -> str:
    """Under a name that is let in."""
    if host in EVERYWHERE:
        name = allow_hosts[0]
        return f"http://{name}/" if PORT.search(name) else f"http://{name}:{port}/"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


async def _serve(engine: Engine, listening: socket.socket, door: Door, ready: Callable[[], None]) -> None:
    logging.getLogger("uvicorn.error").setLevel(
        logging.CRITICAL
    )  # faults are noted by the guard, without texts
    stop = asyncio.Event()
    _listen_to_signals(engine, stop)
    loading = asyncio.create_task(engine.start())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({loading, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not loading.done():
        loading.cancel()
        await asyncio.gather(loading, return_exceptions=True)
        return
    await loading
    app = application(engine)
    routes = frozenset(getattr(route, "path", "") for route in app.routes)
    guard = Guard(app, door, engine.limits, engine.counts, routes)
    listener = Listener(_uvicorn(guard, engine.limits))
    serving = asyncio.create_task(listener.serve([listening]))
    try:
        ready()
        await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        ending = asyncio.create_task(engine.stop())
        await asyncio.sleep(NOTICE_SECONDS)
        listener.should_exit = True
        guard.stop()
        await ending
        await serving
    finally:
        await engine.end()


def _listen_to_signals(engine: Engine, stop: asyncio.Event) -> None:
    """The first asks it to end well, the second to end."""

    def heard() -> None:
        if stop.is_set():
            engine.kill()
            os._exit(1)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard)


def _uvicorn(app: Guard, limits: Limits) -> Config:
    return Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=int(limits.stop_seconds - NOTICE_SECONDS - FLUSH_SECONDS),
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
    )
