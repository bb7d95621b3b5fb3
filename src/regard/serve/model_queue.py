"""Queue of one served model: its waiting jobs, its worker, and restarts when the worker dies."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import RunError, did_you_mean
from regard.serve.choices import searchable
from regard.serve.counts import Counts
from regard.serve.job import Job, chosen
from regard.serve.limits import Limits
from regard.serve.process import WorkerLostError, WorkerProcess
from regard.serve.request_error import RequestError, busy, stopping, unavailable
from regard.tasks.task import Choice

LOG = logging.getLogger("regard.serve")
MAX_TRIES = 2
FIRST_INPUT = "input:1: "
"""Prefix of a worker's refusal of a text, which it finally computes as a batch of one."""
MAX_PAUSE = 30.0
"""Longest pause in seconds between attempts to start a worker."""


class ModelQueue:
    def __init__(self, name: str, folder: Path, limits: Limits, counts: Counts, threads: int) -> None:
        self.name, self.folder, self.limits, self.counts, self.threads = name, folder, limits, counts, threads
        self.about: dict[str, Any] = {}
        self.choices: list[tuple[str, Choice]] = []
        self.worker: WorkerProcess | None = None
        self.waiting: dict[Job, None] = {}
        """Waiting jobs, the oldest first."""
        self.computing: list[Job] = []
        self.listeners: set[int] = set()
        """Open streams of sound, of which the worker keeps a state."""
        self.round = 0
        """The round of the text whose turn it was last."""
        self.is_stopping = False
        self._arrived = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        return self.worker is not None and not self.is_stopping

    @property
    def jobs(self) -> list[Job]:
        """Jobs that count towards the limits: all but the answered ones, even if their batch still runs.

        A job whose client has disconnected counts while it is being computed.
        """
        return [job for job in (*self.computing, *self.waiting) if not job.is_answered]

    def uploads(self, files: Sequence[str]) -> tuple[str, ...]:
        """The inputs that are files, by nature or as a request says; RequestError for unknown ones."""
        inputs = {one["name"]: one["file"] for one in self.about["inputs"]}
        for name in files:
            if name not in inputs:
                raise RequestError(422, "other_fields", f"{name}: unknown{did_you_mean(name, inputs)}")
        return tuple(name for name, is_file in inputs.items() if is_file or name in files)

    def search(self, decode: dict[str, Any]) -> dict[str, Any]:
        """Decode settings of a request, completed by the model's own."""
        return (self.about["decode"] or {}) | decode

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue all jobs, or raise RequestError and queue none."""
        if self.is_stopping:
            raise stopping()
        self._check_room(jobs)
        if jobs[0].purpose == "follow":
            streams = sum(job.purpose == "follow" for job in self.jobs)
            if streams + len(jobs) > self.limits.streams:
                raise busy("streams", self.limits.streams)
        self._check_bytes(sum(job.n_bytes for job in jobs))
        for number, job in enumerate(jobs, 1):
            job.round, job.n_texts = self.round + number, len(jobs)
            self.waiting[job] = None
            job.answer.add_done_callback(lambda _, job=job: self._remove(job))  # type: ignore[misc]
        self._arrived.set()

    def _check_room(self, jobs: Sequence[Job]) -> None:
        """Refuse what exceeds the queue, or would leave too little of a queue that is half full to others.

        A request leaves room for as many texts as it has, so that small ones find places where large ones do
        not, and no client has more than its share while others wait too.
        """
        limit, n_texts = self.limits.queue, len(self.waiting) + len(jobs)
        clients = Counter(job.client for job in (*self.waiting, *jobs))
        spared = min(len(jobs) - 1, limit // 4)
        is_unfair = n_texts > limit - spared or clients[jobs[0].client] > max(1, limit // len(clients))
        if n_texts > limit or (n_texts > limit // 2 and self.waiting and is_unfair):
            raise busy("texts", limit)

    def _check_bytes(self, n_bytes: int) -> None:
        limit = self.limits.explain_bytes
        if n_bytes > limit:
            message = (
                f"the attention of these texts would take about {n_bytes:,} bytes, but at most "
                f"{limit:,} are allowed; shorten them, or send fewer"
            )
            raise RequestError(422, "too_much_attention", message, limit=limit)
        if n_bytes and n_bytes + sum(job.n_bytes for job in self.jobs) > limit:
            raise busy("bytes of attention", limit)

    def _remove(self, job: Job) -> None:
        """Remove a job that is answered, or whose client has disconnected; then stop computing it."""
        self.waiting.pop(job, None)
        if not job.answer.cancelled():
            return
        self.counts.dropped.labels(self.name).inc()
        if job in self.computing and job.purpose == "follow" and self.worker is not None:
            self.worker.cancel_stream()

    def forget(self, stream: int) -> None:
        """End a stream of sound, also in the worker."""
        self.listeners.discard(stream)
        if self.worker is not None:
            self.worker.forget_stream(stream)

    async def first_start(self) -> None:
        """Load the model; RunError if it cannot be loaded."""
        try:
            await self._start()
        except WorkerLostError:
            raise RunError(
                f"{self.folder}: its worker died while loading the model; is there enough memory?"
            ) from None

    async def run(self) -> None:
        """Serve forever, restarting the worker if it dies."""
        pause = 0.0
        while True:
            try:
                if self.worker is None:
                    await asyncio.sleep(pause)
                    await self._start()
                pause = 0.0
                await self._serve()
            except Exception as fault:
                if not isinstance(fault, WorkerLostError | RunError):
                    LOG.error("error in the queue of a model: %s", type(fault).__name__)
                self.counts.lost.labels(self.name).inc()
                await self.end()
                pause = min(MAX_PAUSE, 2 * pause + 0.1)

    async def _start(self) -> None:
        worker = await WorkerProcess.start(self.folder, self.threads, self.limits.start_seconds)
        self.about, self.worker = worker.about, worker
        self.choices = searchable(worker.about["choices"])

    async def end(self) -> None:
        worker, self.worker = self.worker, None
        if worker is not None:
            await worker.end()

    async def _serve(self) -> None:
        assert self.worker is not None
        worker_ended = asyncio.create_task(self.worker.wait())
        try:
            while True:
                await self._gather(worker_ended)
                if open_jobs := [job for job in self.waiting if not job.answer.done()]:
                    await self._compute(chosen(open_jobs, self.limits))
        finally:
            worker_ended.cancel()

    async def _gather(self, worker_ended: "asyncio.Task[None]") -> None:
        """Wait until there are jobs and had time to gather; WorkerLostError when the worker has ended."""
        arrived = asyncio.create_task(self._arrived.wait())
        try:
            await asyncio.wait({arrived, worker_ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            arrived.cancel()
        if worker_ended.done():
            raise WorkerLostError
        if self.waiting and len(self.waiting) < self.limits.batch_texts:
            age = time.monotonic() - next(iter(self.waiting)).born
            if age < self.limits.gather_seconds:
                await asyncio.sleep(self.limits.gather_seconds - age)
        if not self.waiting:
            self._arrived.clear()

    async def _compute(self, batch: list[Job]) -> None:
        assert self.worker is not None
        self.round = max(self.round, batch[0].round)
        for job in batch:
            del self.waiting[job]
        self.computing = batch
        self.counts.batches.labels(self.name).observe(len(batch))
        message = {
            "kind": batch[0].purpose,
            "texts": [job.text for job in batch],
            "decode": batch[0].decode,
            "packed": batch[0].packed,
            "uploads": batch[0].uploads,
        }
        try:
            await self.worker.compute(
                message,
                lambda reply: self._deliver(batch[reply["at"]], reply),
                self.limits.compute_seconds,
            )
        except Exception:
            self._requeue(batch)
            raise
        finally:
            self.computing = []

    def _deliver(self, job: Job, reply: dict[str, Any]) -> None:
        if job.answer.done():  # its client has disconnected
            return
        if "part" in reply:
            job.parts.put_nowait(reply["part"])
        elif "answer" in reply:
            job.answer.set_result(reply["answer"])
        elif "refused" in reply:
            message: str = reply["refused"]
            if message.startswith(FIRST_INPUT):
                message = (
                    f"{'input' if job.uploads else 'text'} {job.number}: {message.removeprefix(FIRST_INPUT)}"
                )
            job.answer.set_exception(RequestError(422, "cannot_be_done", message))
        else:
            message = f"internal server error ({reply['fault']}), which has been logged; please report it"
            job.answer.set_exception(RequestError(500, "fault", message))

    def _requeue(self, batch: list[Job]) -> None:
        """Queue the jobs of a lost worker once more, before all others and each in a batch of its own."""
        unanswered = [job for job in batch if not job.answer.done()]
        for job in unanswered:
            job.tries, job.round = job.tries + 1, 0
            if job.tries == MAX_TRIES:
                job.answer.set_exception(unavailable(self.name))
        self.waiting = dict.fromkeys(job for job in unanswered if not job.answer.done()) | self.waiting

    def give_up(self) -> None:
        """Answer all open jobs that the server is stopping."""
        for job in self.jobs:
            if not job.answer.done():
                job.answer.set_exception(stopping())
