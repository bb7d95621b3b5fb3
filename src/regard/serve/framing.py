"""Framing of messages between the server and a worker: four bytes of length, then JSON, never pickle."""

import asyncio
import json
import os
import struct
from typing import Any

Message = dict[str, Any]
LENGTH = struct.Struct("!I")


def pack(message: Message) -> bytes:
    body = json.dumps(message, allow_nan=False).encode()
    return LENGTH.pack(len(body)) + body


async def receive(stream: asyncio.StreamReader) -> Message:
    """Read the next message; IncompleteReadError when the other side has closed."""
    (length,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
    return _message(await stream.readexactly(length))


def read(descriptor: int) -> Message | None:
    """Read the next message from a blocking pipe; None when the other side has closed."""
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
