"""The server's side of a worker process: start it, send it batches, receive its replies, notice its death."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self

from regard.errors import RunError
from regard.serve.framing import Message, pack, receive

END_SECONDS = 0.5


class WorkerLostError(Exception):
    """Error of a worker that died, or did not answer in time."""


class WorkerProcess:
    def __init__(self, process: asyncio.subprocess.Process, about: Message) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self.about = process, about
        self._in, self._out = process.stdin, process.stdout

    @classmethod
    async def start(cls, folder: Path, threads: int, seconds: float) -> Self:
        """Start a worker that has loaded its model and answered a first text; RunError if it cannot."""
        environment = {"OMP_NUM_THREADS": str(threads)} | os.environ
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "regard.serve.worker", str(folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches only the server, which lets the worker finish
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                first = await receive(process.stdout)
        except (asyncio.IncompleteReadError, TimeoutError):
            await _end(process)
            raise WorkerLostError from None
        except asyncio.CancelledError:
            await _end(process)
            raise
        if "failed" in first:
            await _end(process)
            raise RunError(first["failed"])
        return cls(process, first["ready"])

    async def wait(self) -> None:
        """Wait until the process has ended."""
        await self.process.wait()

    async def compute(self, message: Message, deliver: Callable[[Message], None], seconds: float) -> None:
        """Send a batch and call `deliver` with every reply until it is done."""
        try:
            async with asyncio.timeout(seconds):
                self._in.write(pack(message))
                await self._in.drain()
                while "done" not in (reply := await receive(self._out)):
                    deliver(reply)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            raise WorkerLostError from None

    def cancel_stream(self) -> None:
        """Stop the current stream, as its client has disconnected."""
        if not self._in.is_closing():
            self._in.write(pack({"kind": "stop"}))

    def forget_stream(self, stream: int) -> None:
        """Drop the state of a stream of sound, which is over."""
        if not self._in.is_closing():
            self._in.write(pack({"kind": "forget", "stream": stream}))

    async def end(self) -> None:
        await _end(self.process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a worker by closing its input; kill it if it does not end, as it holds nothing to be lost."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
