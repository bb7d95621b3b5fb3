"""The parent's end of a worker: start it, send it a batch, hear its replies, know when it is gone."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self

from regard.errors import RunError
from regard.serve.wire import Message, packed, received

END_SECONDS = 0.5


class LostError(Exception):
    """The worker died, or did not answer in time."""


class WorkerProcess:
    def __init__(self, process: asyncio.subprocess.Process, about: Message) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self.about = process, about
        self._in, self._out = process.stdin, process.stdout

    @classmethod
    async def start(cls, folder: Path, threads: int, seconds: float) -> Self:
        """A worker that has loaded the model and answered a first text; RunError says why it cannot."""
        environment = {"OMP_NUM_THREADS": str(threads)} | os.environ
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "regard.serve.worker", str(folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the parent, which lets the worker finish
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                first = await received(process.stdout)
        except (asyncio.IncompleteReadError, TimeoutError):
            await _end(process)
            raise LostError from None
        except asyncio.CancelledError:
            await _end(process)
            raise
        if "failed" in first:
            await _end(process)
            raise RunError(first["failed"])
        return cls(process, first["ready"])

    async def gone(self) -> None:
        await self.process.wait()

    async def ask(self, message: Message, deliver: Callable[[Message], None], seconds: float) -> None:
        """Sends a batch; `deliver` hears every reply until all are there."""
        try:
            async with asyncio.timeout(seconds):
                self._in.write(packed(message))
                await self._in.drain()
                while "done" not in (reply := await received(self._out)):
                    deliver(reply)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            raise LostError from None

    def call_off(self) -> None:
        """Nobody reads the stream it works on any more."""
        if not self._in.is_closing():
            self._in.write(packed({"kind": "stop"}))

    async def end(self) -> None:
        await _end(self.process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Its input ends, so it does; one that does not is killed, as it holds nothing that would be lost."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
