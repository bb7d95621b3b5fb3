"""Frames between the server and a worker: four bytes of length, then JSON. Nothing in them is executed."""

import asyncio
import json
import os
import struct
from typing import Any

Message = dict[str, Any]
LENGTH = struct.Struct("!I")


def packed(message: Message) -> bytes:
    body = json.dumps(message, allow_nan=False).encode()
    return LENGTH.pack(len(body)) + body


async def received(stream: asyncio.StreamReader) -> Message:
    """The next frame; IncompleteReadError when the other side has gone."""
    (length,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
    return _message(await stream.readexactly(length))


def read(descriptor: int) -> Message | None:
    """The next frame of a blocking pipe; None when the other side has gone."""
    header = _exactly(descriptor, LENGTH.size)
    if header is None:
        return None
    body = _exactly(descriptor, LENGTH.unpack(header)[0])
    return None if body is None else _message(body)


def _exactly(descriptor: int, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        part = os.read(descriptor, count - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)


def _message(body: bytes) -> Message:
    message: Message = json.loads(body)
    return message
