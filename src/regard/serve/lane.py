"""One model being served: what waits for it, its worker, and what happens when the worker dies."""

import asyncio
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import RunError
from regard.serve.counts import Counts
from regard.serve.job import Job, chosen
from regard.serve.limits import Limits
from regard.serve.process import LostError, WorkerProcess
from regard.serve.refused import RefusedError, busy, stopping, unavailable

LOG = logging.getLogger("regard.serve")
MOST_TRIES = 2
ALONE = "input:1: "
"""How a worker calls a text that it cannot answer: at last it is asked about each by itself."""
LONGEST_PAUSE = 30.0
"""Seconds between attempts to start a worker that cannot be started."""


class Lane:
    def __init__(self, name: str, folder: Path, limits: Limits, counts: Counts, threads: int) -> None:
        self.name, self.folder, self.limits, self.counts, self.threads = name, folder, limits, counts, threads
        self.about: dict[str, Any] = {}
        self.worker: WorkerProcess | None = None
        self.waiting: dict[Job, None] = {}
        """By age, the oldest first."""
        self.computing: list[Job] = []
        self.is_stopping = False
        self._arrived = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        return self.worker is not None and not self.is_stopping

    @property
    def jobs(self) -> list[Job]:
        """That take up room. An answered one does not, though its worker may be long in saying that it is
        done; one that nobody waits for any more does while it is computed.
        """
        return [job for job in (*self.computing, *self.waiting) if not job.is_answered]

    def search(self, decode: dict[str, Any]) -> dict[str, Any]:
        """How it searches: as a request says, and else as the model was made."""
        return (self.about["decode"] or {}) | decode

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue all of them, or refuse all."""
        if self.is_stopping:
            raise stopping()
        if len(self.waiting) + len(jobs) > self.limits.queue:
            raise busy("texts", self.limits.queue)
        if jobs[0].kind == "follow":
            streams = sum(job.kind == "follow" for job in self.jobs)
            if streams + len(jobs) > self.limits.streams:
                raise busy("streams", self.limits.streams)
        self._admit_bytes(sum(job.n_bytes for job in jobs))
        for job in jobs:
            self.waiting[job] = None
            job.answer.add_done_callback(lambda _, job=job: self._forget(job))  # type: ignore[misc]
        self._arrived.set()

    def _admit_bytes(self, n_bytes: int) -> None:
        limit = self.limits.explain_bytes
        if n_bytes > limit:
            message = (
                f"the attention of these texts would take about {n_bytes:,} bytes, "
                f"{limit:,} are allowed; shorten them, or send fewer"
            )
            raise RefusedError(422, "too_much_attention", message, limit=limit)
        if n_bytes and n_bytes + sum(job.n_bytes for job in self.jobs) > limit:
            raise busy("bytes of attention", limit)

    def _forget(self, job: Job) -> None:
        """Answered, or its client has gone: then it will not be computed, or no further."""
        self.waiting.pop(job, None)
        if not job.answer.cancelled():
            return
        self.counts.dropped.labels(self.name).inc()
        if job in self.computing and job.kind == "follow" and self.worker is not None:
            self.worker.call_off()

    async def first_start(self) -> None:
        """Load the model; RunError when it cannot be."""
        try:
            await self._start()
        except LostError:
            raise RunError(f"{self.folder}: its worker died while loading; is there memory for it?") from None

    async def run(self) -> None:
        """Serve for ever, with one worker after another if need be."""
        pause = 0.0
        while True:
            try:
                if self.worker is None:
                    await asyncio.sleep(pause)
                    await self._start()
                pause = 0.0
                await self._serve()
            except Exception as fault:
                if not isinstance(fault, LostError | RunError):
                    LOG.error("fault in the lane of a model: %s", type(fault).__name__)
                self.counts.lost.labels(self.name).inc()
                await self.end()
                pause = min(LONGEST_PAUSE, 2 * pause + 0.1)

    async def _start(self) -> None:
        worker = await WorkerProcess.start(self.folder, self.threads, self.limits.start_seconds)
        self.about, self.worker = worker.about, worker

    async def end(self) -> None:
        worker, self.worker = self.worker, None
        if worker is not None:
            await worker.end()

    async def _serve(self) -> None:
        assert self.worker is not None
        gone = asyncio.create_task(self.worker.gone())
        try:
            while True:
                await self._something_or(gone)
                if wanted := [job for job in self.waiting if not job.answer.done()]:
                    await self._compute(chosen(wanted, self.limits))
        finally:
            gone.cancel()

    async def _something_or(self, gone: "asyncio.Task[None]") -> None:
        """Returns when texts wait and company had time to come; LostError when the worker has gone."""
        arrived = asyncio.create_task(self._arrived.wait())
        try:
            await asyncio.wait({arrived, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            arrived.cancel()
        if gone.done():
            raise LostError
        if self.waiting and len(self.waiting) < self.limits.batch_texts:
            age = time.monotonic() - next(iter(self.waiting)).born
            if age < self.limits.gather_seconds:
                await asyncio.sleep(self.limits.gather_seconds - age)
        if not self.waiting:
            self._arrived.clear()

    async def _compute(self, batch: list[Job]) -> None:
        assert self.worker is not None
        for job in batch:
            del self.waiting[job]
        self.computing = batch
        self.counts.batches.labels(self.name).observe(len(batch))
        message = {
            "kind": batch[0].kind,
            "texts": [job.text for job in batch],
            "decode": batch[0].decode,
            "packed": batch[0].packed,
        }
        try:
            await self.worker.ask(
                message,
                lambda reply: self._deliver(batch[reply["at"]], reply),
                self.limits.compute_seconds,
            )
        except Exception:
            self._give_back(batch)
            raise
        finally:
            self.computing = []

    def _deliver(self, job: Job, reply: dict[str, Any]) -> None:
        if job.answer.done():  # its client has gone
            return
        if "part" in reply:
            job.parts.put_nowait(reply["part"])
        elif "answer" in reply:
            job.answer.set_result(reply["answer"])
        elif "refused" in reply:
            said: str = reply["refused"]
            message = f"text {job.number}: {said.removeprefix(ALONE)}" if said.startswith(ALONE) else said
            job.answer.set_exception(RefusedError(422, "cannot_be_done", message))
        else:
            message = f"a fault of the server ({reply['fault']}); it is noted, please report it"
            job.answer.set_exception(RefusedError(500, "fault", message))

    def _give_back(self, batch: list[Job]) -> None:
        """What the worker had in its hands is tried once more, before anything else and each by itself."""
        again = [job for job in batch if not job.answer.done()]
        for job in again:
            job.tries += 1
            if job.tries == MOST_TRIES:
                job.answer.set_exception(unavailable(self.name))
        self.waiting = dict.fromkeys(job for job in again if not job.answer.done()) | self.waiting

    def give_up(self) -> None:
        """Answer everybody who still waits that it will not happen."""
        for job in self.jobs:
            if not job.answer.done():
                job.answer.set_exception(stopping())
