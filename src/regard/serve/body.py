"""Request bodies: read up to a size limit, in bounded time, and discarded when the request is refused."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from regard.serve.request_error import RequestError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]

MAX_DISCARDED = 32_000_000
DISCARD_SECONDS = 5.0


class Body:
    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._more = True

    async def read(self, limit: int, seconds: float) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(seconds):
                async for part in self._parts():
                    body += part
                    if len(body) > limit:
                        raise too_large(limit)
        except TimeoutError:
            message = f"the body took longer than {seconds:g} seconds"
            raise RequestError(408, "too_slow", message, limit=seconds) from None
        return bytes(body)

    def expect(self, n_bytes: int) -> None:
        """Set the announced length; a body that is far too large is not even discarded."""
        self._more = n_bytes <= MAX_DISCARDED

    async def discard(self) -> None:
        """Discard the body, so that a client still sending it gets the error, not a broken connection."""
        discarded = 0
        try:
            async with asyncio.timeout(DISCARD_SECONDS):
                async for part in self._parts():
                    discarded += len(part)
                    if discarded > MAX_DISCARDED:
                        return
        except (TimeoutError, RequestError):
            return

    async def _parts(self) -> AsyncIterator[bytes]:
        while self._more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._more = False
                raise RequestError(400, "cut_off", "the body ended before its announced length")
            self._more = message.get("more_body", False)
            yield message.get("body", b"")

    async def receive(self) -> Scope:
        """ASGI `receive` for an application that reads the body while it comes in."""
        message = await self._receive()
        self._more = self._more and bool(message.get("more_body", False))
        return message

    def replay(self, body: bytes) -> Receive:
        """ASGI `receive` for the application: the whole body, then the client's messages."""
        is_sent = False

        async def receive() -> Scope:
            nonlocal is_sent
            if is_sent:
                return await self._receive()
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        return receive


def too_large(limit: int) -> RequestError:
    return RequestError(413, "too_large", f"the body has more than {limit:,} bytes; send less", limit=limit)
