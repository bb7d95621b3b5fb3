"""The server's life: listen, load the models, serve, and end well when told to."""

import asyncio
import os
import re
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from regard.errors import ServeError
from regard.serve.door import Door
from regard.serve.engine import FLUSH_SECONDS, Engine, named
from regard.serve.guard import Guard
from regard.serve.http import application
from regard.serve.limits import LIMITS, Limits
from regard.serve.listener import MOST_PENDING, Listener, note_without_texts, within_files

LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::")
HOST = re.compile(r"[^\s/*@]+")
PORT = re.compile(r":\d+$")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/*@?#]+", re.IGNORECASE)
NOTICE_SECONDS = 0.5
"""From the signal on so long it still listens and says 503, so that whoever balances load sees it."""


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
    limits = within_files(limits, len(folders))
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
    if not host:
        raise ServeError("--host: is empty; give an address of this machine, or 0.0.0.0 for all of them")
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
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ServeError(f"--host {host}: no such address here ({why})") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(MOST_PENDING)
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
    asyncio.get_running_loop().set_exception_handler(note_without_texts)
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
    listener = Listener(guard, engine.limits.stop_seconds - NOTICE_SECONDS - FLUSH_SECONDS)
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
