"""Streams of sound: a WebSocket, or a request whose body is still being sent, that is answered meanwhile.

A stream is a sequence of jobs of one worker, which keeps what the model needs of the past. The next block of
sound is read once the last has been heard, so that a client that floods is slowed down by TCP and costs no
memory; a long block is heard a second at a time, so that other streams have their turns. When a stream ends,
however it ends, the worker forgets it.
"""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from itertools import count
from typing import Any
from urllib.parse import parse_qsl

from regard.errors import did_you_mean
from regard.files.sound import HIGHEST_RATE, LOWEST_RATE
from regard.serve.body import Receive, Scope
from regard.serve.engine import Engine
from regard.serve.job import Job
from regard.serve.model_queue import ModelQueue
from regard.serve.request_error import RequestError, busy
from regard.tasks import TASKS

PATH = "/v1/listen"
RAW = ("audio/l16", "application/octet-stream")
"""What a body of raw samples is called."""
SETTINGS = ("model", "rate")
SAMPLE = 2
"""Bytes."""
AT_ONCE = 1.0
"""Seconds of sound that are heard in one turn."""
NORMAL, LEAVING, WRONG_KIND, REFUSED, FAULT, LATER = 1000, 1001, 1003, 1008, 1011, 1013
"""Codes with which a WebSocket is closed."""
MOST_REASON = 120
"""Bytes of a sentence beside such a code."""
LISTENING = tuple(name for name, task in TASKS.items() if task.listens)
Send = Callable[[Scope], Awaitable[None]]


class Stream:
    """One stream of sound: which model hears it, and the blocks that it has heard."""

    numbers = count()

    def __init__(self, engine: Engine, query: bytes) -> None:
        settings = _settings(query)
        self.engine, self.rate = engine, _rate(settings.get("rate", "16000"))
        self.lane: ModelQueue = engine.lane(settings.get("model"), *LISTENING)
        if not self.lane.about["listens"]:
            message = f"the model {self.lane.name!r} hears whole recordings alone; ask it at /v1/ask"
            raise RequestError(422, "other_task", message)
        self.name, self.n_heard, self.seconds, self.half = next(self.numbers), 0, 0.0, b""

    def __enter__(self) -> "Stream":
        limit = self.engine.limits.listeners
        if len(self.lane.listeners) >= limit:
            raise busy("streams of sound", limit)
        self.lane.listeners.add(self.name)
        return self

    def __exit__(self, *_: object) -> None:
        self.lane.forget(self.name)

    async def hear(self, sound: bytes, *, is_last: bool = False) -> AsyncGenerator[dict[str, Any], None]:
        """What became known by a block of sound, a part of it after another."""
        sound = self.half + sound
        whole = len(sound) // SAMPLE * SAMPLE
        sound, self.half = sound[:whole], sound[whole:]
        limit = self.engine.limits.listen_seconds
        self.seconds += len(sound) / SAMPLE / self.rate
        if self.seconds > limit:
            message = f"the stream has more than {limit:g} seconds; begin another"
            raise RequestError(413, "too_long", message, limit=limit)
        step = SAMPLE * int(AT_ONCE * self.rate)
        begins = [*range(0, len(sound), step)] or ([0] if is_last else [])
        for begin in begins:
            ends = is_last and begin == begins[-1]
            if partial := await self._heard(sound[begin : begin + step], ends):
                yield partial

    async def _heard(self, sound: bytes, ends: bool) -> dict[str, Any]:
        block = {
            "stream": self.name,
            "number": self.n_heard,
            "rate": self.rate,
            "sound": b64encode(sound).decode(),
            "is_last": ends,
        }
        self.n_heard += 1
        (partial,) = await self.engine.answers(self.lane, [Job(block, "listen")])
        return partial


class Listening:
    """The routes, as plain ASGI: answers are sent while the request is still coming in."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self.socket(scope, receive, send)
        else:
            await self.body(scope, receive, send)

    async def body(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A line of JSON whenever more is known, while the body is being sent."""
        with Stream(self.engine, scope["query_string"]) as stream:
            start = {"type": "http.response.start", "status": 200}
            has_begun = False

            async def line(content: dict[str, Any]) -> None:
                nonlocal has_begun
                if not has_begun:
                    has_begun = True
                    await send(start | {"headers": [(b"content-type", b"application/x-ndjson")]})
                body = json.dumps(content).encode() + b"\n"
                await send({"type": "http.response.body", "body": body, "more_body": True})

            try:
                async with aclosing(_parts(receive, self.engine.limits.listen_idle_seconds)) as parts:
                    async for sound, is_last in parts:
                        async for partial in stream.hear(sound, is_last=is_last):
                            await line(partial)
            except RequestError as refusal:
                if not has_begun:
                    raise
                await line(refusal.to_json())
            except ConnectionError:  # the client has gone
                return
            await send({"type": "http.response.body", "body": b""})

    async def socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Blocks of sound as binary messages; an empty one ends the stream. Answers are JSON."""
        try:
            with Stream(self.engine, scope["query_string"]) as stream:
                await receive()  # the opening
                await send({"type": "websocket.accept"})
                code, reason = await self._converse(stream, receive, send)
        except RequestError as refusal:
            await refuse_socket(refusal, send)
            return
        except ConnectionError:  # the client has gone
            return
        await send({"type": "websocket.close", "code": code, "reason": reason})

    async def _converse(self, stream: Stream, receive: Receive, send: Send) -> tuple[int, str]:
        """Until the stream ends; the code and the sentence that it is closed with."""
        limits = self.engine.limits
        while True:
            try:
                async with asyncio.timeout(limits.listen_idle_seconds):
                    message = await receive()
            except TimeoutError:
                return REFUSED, f"no sound came for {limits.listen_idle_seconds:g} seconds; begin again"
            if message["type"] == "websocket.disconnect":
                raise ConnectionError
            sound = message.get("bytes")
            if sound is None:
                return WRONG_KIND, "send sound as binary messages of 16-bit samples; an empty one ends it"
            try:
                async with aclosing(stream.hear(sound, is_last=not sound)) as partials:
                    async for partial in partials:
                        await send({"type": "websocket.send", "text": json.dumps(partial)})
            except RequestError as refusal:
                await send({"type": "websocket.send", "text": json.dumps(refusal.to_json())})
                return _code(refusal), _short(refusal.message)
            if not sound:
                return NORMAL, ""


async def refuse_socket(refusal: RequestError, send: Send) -> None:
    """An answer in JSON instead of an opened WebSocket."""
    headers = [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    headers.append((b"content-type", b"application/json"))
    start = {"type": "websocket.http.response.start", "status": refusal.status, "headers": headers}
    await send(start)
    body = json.dumps(refusal.to_json()).encode()
    await send({"type": "websocket.http.response.body", "body": body, "more_body": False})


async def _parts(receive: Receive, idle_seconds: float) -> AsyncGenerator[tuple[bytes, bool], None]:
    """Parts of a body as they come, and whether each is the last one."""
    more = True
    while more:
        try:
            async with asyncio.timeout(idle_seconds):
                message = await receive()
        except TimeoutError:
            sentence = f"no sound came for {idle_seconds:g} seconds; begin again"
            raise RequestError(408, "too_slow", sentence, limit=idle_seconds) from None
        if message["type"] == "http.disconnect":
            raise ConnectionError
        more = message.get("more_body", False)
        if (sound := message.get("body", b"")) or not more:
            yield sound, not more


def _settings(query: bytes) -> dict[str, str]:
    settings = dict(parse_qsl(query.decode("latin-1"), max_num_fields=16))
    for name in settings:
        if name not in SETTINGS:
            raise RequestError(422, "invalid", f"{name[:40]}: unknown{did_you_mean(name[:40], SETTINGS)}")
    return settings


def _rate(text: str) -> int:
    rate = int(text) if text.isascii() and text.isdigit() and len(text) <= 7 else 0
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        message = f"rate: give the samples a second, from {LOWEST_RATE:,} to {HIGHEST_RATE:,}"
        raise RequestError(422, "invalid", message)
    return rate


def _code(refusal: RequestError) -> int:
    if refusal.status in (429, 503):
        return LATER
    return FAULT if refusal.status >= 500 else REFUSED


def _short(sentence: str) -> str:
    """As much of a sentence as fits beside a code."""
    return sentence.encode()[:MOST_REASON].decode("utf-8", "ignore")
