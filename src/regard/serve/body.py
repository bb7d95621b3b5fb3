"""A request's body: read up to its limit, in bounded time, and thrown away when it will not be looked at."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from regard.serve.refused import RefusedError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]

MOST_DISCARDED = 32_000_000
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
            raise RefusedError(408, "too_slow", message, limit=seconds) from None
        return bytes(body)

    def expect(self, n_bytes: int) -> None:
        """What is far too large is not even thrown away."""
        self._more = n_bytes <= MOST_DISCARDED

    async def discard(self) -> None:
        """So that a client which is still sending reads why it is refused, and not that it was cut off."""
        discarded = 0
        try:
            async with asyncio.timeout(DISCARD_SECONDS):
                async for part in self._parts():
                    discarded += len(part)
                    if discarded > MOST_DISCARDED:
                        return
        except (TimeoutError, RefusedError):
            return

    async def _parts(self) -> AsyncIterator[bytes]:
        while self._more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._more = False
                raise RefusedError(400, "cut_off", "the body ended before its length")
            self._more = message.get("more_body", False)
            yield message.get("body", b"")

    def again(self, body: bytes) -> Receive:
        """For whoever comes after: the whole body, then only that the client has gone."""
        is_given = False

        async def receiving() -> Scope:
            nonlocal is_given
            if is_given:
                return await self._receive()
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}

        return receiving


def too_large(limit: int) -> RefusedError:
    return RefusedError(413, "too_large", f"the body has more than {limit:,} bytes; send less", limit=limit)
