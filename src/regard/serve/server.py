"""Life cycle of the server: listen, load the models, serve, and shut down gracefully."""

import asyncio
import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from regard.errors import ServeError
from regard.serve.access import AccessControl
from regard.serve.engine import FLUSH_SECONDS, Engine, named
from regard.serve.http import application
from regard.serve.limits import LIMITS, Limits
from regard.serve.listener import BACKLOG, Listener, log_without_texts, within_open_files
from regard.serve.middleware import Middleware

LOOPBACK = ("localhost", "127.0.0.1", "::1")
ALL_ADDRESSES = ("0.0.0.0", "::")
HOST = re.compile(r"[^\s/*@]+")
PORT = re.compile(r":\d+$")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/*@?#]+", re.IGNORECASE)
NOTICE_SECONDS = 0.5
"""Seconds after the signal in which it still answers 503, so that a load balancer notices."""


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
    """Serve until a signal; `tell` is called with the address once every model is ready."""
    folders = named(runs)
    _require_key(host, key, allow_hosts)
    _check_names(allow_hosts, allow_origins)
    limits = within_open_files(limits, len(folders))
    listening = _bind(host, port)
    port = listening.getsockname()[1]
    origins = frozenset(origin.lower() for origin in allow_origins)
    access = AccessControl(_host_headers(host, port, allow_hosts), origins, key)
    engine = Engine(folders, limits)
    deadline = threading.Timer(limits.stop_seconds, _exit, [engine])
    deadline.daemon = True
    with listening:
        try:
            asyncio.run(
                _serve(engine, listening, access, lambda: tell(_url(host, port, allow_hosts)), deadline)
            )
        finally:
            deadline.cancel()


def _exit(engine: Engine) -> None:
    """End at once, with nobody told."""
    engine.kill()
    os._exit(1)


def _require_key(host: str, key: str | None, allow_hosts: Sequence[str]) -> None:
    """Raise ServeError if others can reach the server, but there is no key, or no name to reach it by."""
    if host in LOOPBACK:
        return
    if not host:
        raise ServeError("--host: is empty; give an address of this machine, or 0.0.0.0 for all of them")
    if key is None:
        raise ServeError(
            f"--host {host}: others can reach this address, so the server needs a key; give --key-file FILE, "
            "or put the key into the environment variable REGARD_KEY"
        )
    if host in ALL_ADDRESSES and not allow_hosts:
        raise ServeError(
            f"--host {host}: give the names by which clients reach the server, with --allow-host NAME (once "
            "for each)"
        )


def _check_names(allow_hosts: Sequence[str], allow_origins: Sequence[str]) -> None:
    """Raise ServeError for a host or an origin that could never occur in a header."""
    for name in allow_hosts:
        if not HOST.fullmatch(name):
            raise ServeError(f"--allow-host {name}: not a host name; write it like models.example.org")
    for origin in allow_origins:
        if not ORIGIN.fullmatch(origin):
            raise ServeError(
                f"--allow-origin {origin}: not an origin; write scheme and host without a path, like "
                "https://app.example.org (once for each)"
            )


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ServeError(f"--host {host}: not an address of this machine ({why})") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise ServeError(
            f"--port {port}: not available on {host} ({error.strerror}); choose another, or stop the program "
            "that uses it"
        ) from None
    return listening


def _host_headers(host: str, port: int, allow_hosts: Sequence[str]) -> frozenset[str]:
    """Allowed values of the Host header: with the port, and without it where it may be omitted."""
    addresses = LOOPBACK if host in LOOPBACK else () if host in ALL_ADDRESSES else (host,)
    names = {f"[{name}]" if ":" in name else name.lower() for name in addresses}
    allowed = {name.lower() for name in allow_hosts}
    without_port = names if port == 80 else set()
    return frozenset({f"{name}:{port}" for name in names | allowed} | allowed | without_port)


def _url(host: str, port: int, allow_hosts: Sequence[str]) -> str:
    """URL of the server with an allowed name."""
    if host in ALL_ADDRESSES:
        name = allow_hosts[0]
        return f"http://{name}/" if PORT.search(name) else f"http://{name}:{port}/"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


async def _serve(
    engine: Engine,
    listening: socket.socket,
    access: AccessControl,
    ready: Callable[[], None],
    deadline: threading.Timer,
) -> None:
    asyncio.get_running_loop().set_exception_handler(log_without_texts)
    stop = asyncio.Event()
    _handle_signals(engine, stop, deadline)
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
    middleware = Middleware(app, access, engine.limits, engine.counts, routes)
    listener = Listener(middleware, engine.limits.stop_seconds - NOTICE_SECONDS - FLUSH_SECONDS)
    serving = asyncio.create_task(listener.serve([listening]))
    try:
        ready()
        await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        ending = asyncio.create_task(engine.stop())
        await asyncio.sleep(NOTICE_SECONDS)
        listener.should_exit = True
        middleware.stop()
        await ending
        await serving
    finally:
        await engine.end()


def _handle_signals(engine: Engine, stop: asyncio.Event, deadline: threading.Timer) -> None:
    """Shut down gracefully at the first signal, and at once at the second or when the time is over."""

    def on_signal() -> None:
        if stop.is_set():
            _exit(engine)
        deadline.start()
        engine.refuse()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
