"""The models being served, by name; how requests become jobs, and how everything stops."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.errors import ServeError
from regard.files.row import Asked
from regard.serve.counts import Counts
from regard.serve.job import Job, Purpose, n_characters
from regard.serve.limits import LIMITS, Limits
from regard.serve.model_queue import ModelQueue
from regard.serve.request_error import RequestError, unavailable, unknown_model
from regard.tasks import TASKS

SEEN_BYTES = 8
"""Bytes of one attention weight, as computed and as kept."""
PACKED_BYTES, PLAIN_BYTES = 4, 64
"""Bytes of a weight that is sent, packed or as a number in a list: as Python holds it, and as written."""
SCORE_BYTES = 16 * 8
"""Bytes of one token at one place of an answer, in the 16 simultaneous replays that measure trust."""
FLUSH_SECONDS = 1.5
"""Kept of the time to stop, so that the last answers still reach their clients, and once more for the end."""


class Engine:
    def __init__(self, folders: Mapping[str, Path], limits: Limits = LIMITS) -> None:
        self.limits, self.counts = limits, Counts()
        threads = max(1, (os.cpu_count() or 1) // len(folders))
        self.lanes = {
            name: ModelQueue(name, folder, limits, self.counts, threads) for name, folder in folders.items()
        }
        self.is_stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_ready(self) -> bool:
        return not self.is_stopping and all(lane.is_ready for lane in self.lanes.values())

    async def start(self) -> None:
        """Load every model, or raise what hinders the first that cannot be."""
        try:
            async with asyncio.TaskGroup() as group:
                for lane in self.lanes.values():
                    group.create_task(lane.first_start())
        except BaseExceptionGroup as faults:
            await self.end()
            raise faults.exceptions[0] from None
        self._tasks = [asyncio.create_task(lane.run()) for lane in self.lanes.values()]

    def lane(self, name: str | None, *tasks: str) -> ModelQueue:
        """The model of that name, or the only one for these tasks; for any task if none is given."""
        able = [lane for lane in self.lanes.values() if not tasks or lane.about["task"] in tasks]
        if name is None and not able:
            known = ", ".join(
                f"{lane.name} ({TASKS[lane.about['task']].path()})" for lane in self.lanes.values()
            )
            raise RequestError(422, "which_model", f"no model here answers that; there are: {known}")
        if name is None:
            if len(able) > 1:
                message = f"say which model: {', '.join(lane.name for lane in able)}"
                raise RequestError(422, "which_model", message)
            return able[0]
        found = self.lanes.get(name)
        if found is None:
            raise unknown_model(self.lanes)
        if found not in able:
            kind = found.about["task"]
            raise RequestError(
                422, "other_task", f"the model {name!r} is for {TASKS[kind].path()}; ask it there"
            )
        return found

    def jobs(
        self,
        lane: ModelQueue,
        texts: Sequence[Asked],
        kind: Purpose,
        decode: dict[str, Any],
        *,
        packed: bool = False,
        uploads: tuple[str, ...] = (),
    ) -> list[Job]:
        search = lane.search(decode)
        explains = kind == "explain"
        if explains and not lane.about["heads"]:
            message = f"the model {lane.name!r} has no attention to show; leave it out"
            raise RequestError(422, "no_attention", message)
        units = sum(one["units"] for one in lane.about["inputs"] if one["name"] in uploads)
        return [
            Job(
                text,
                kind,
                decode,
                _width(search),
                packed,
                uploads,
                units,
                attention_bytes(lane.about, search, text, packed=packed, units=units) if explains else 0,
                number=number,
            )
            for number, text in enumerate(texts, 1)
        ]

    async def answers(self, lane: ModelQueue, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        """Answers of all jobs, in their order; cancelling this cancels them."""
        lane.submit(jobs)
        try:
            async with asyncio.timeout(self.limits.wait_seconds):
                return await asyncio.gather(*(job.answer for job in jobs))
        except TimeoutError:
            raise unavailable(lane.name) from None
        finally:
            for job in jobs:
                job.answer.cancel()

    def refuse(self) -> None:
        """Take nothing new, and be ready no more."""
        self.is_stopping = True
        for lane in self.lanes.values():
            lane.is_stopping = True

    async def stop(self) -> None:
        """Take nothing new, finish what waits, and tell the rest that it will not happen."""
        self.refuse()
        open_answers = [job.answer for lane in self.lanes.values() for job in lane.jobs]
        if open_answers:
            await asyncio.wait(open_answers, timeout=self.limits.stop_seconds - 2 * FLUSH_SECONDS)
        for lane in self.lanes.values():
            lane.give_up()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(lane.end() for lane in self.lanes.values()))

    def kill(self) -> None:
        """Kill the workers at once, without a word to clients."""
        for lane in self.lanes.values():
            if lane.worker is not None:
                lane.worker.process.kill()


def named(runs: Sequence[Path]) -> dict[str, Path]:
    """Runs by the names of their folders, which clients ask for."""
    folders: dict[str, Path] = {}
    for run in runs:
        name = run.resolve().name
        if name in folders:
            raise ServeError(
                f"{run}: another run is called {name!r} too, and models are asked for by name; rename one"
            )
        folders[name] = run
    return folders


def _width(decode: dict[str, Any]) -> int:
    width: int = decode.get("n_best", 1) if decode.get("sample") else decode.get("beam", 1)
    return width


def attention_bytes(
    about: dict[str, Any], search: dict[str, Any], text: Asked, *, packed: bool, units: int = 0
) -> int:
    """An upper bound: a character is a token at most as a rule, and no side has more than max_length.

    Files become so many units; all pictures of a model have as many cells of attention as its probe.
    """
    if units:
        n_cells = max(about["cells"], about["heads"] * min(units, about["max_length"] + 2) ** 2)
        return int(n_cells * (SEEN_BYTES + (PACKED_BYTES if packed else PLAIN_BYTES)))
    side: int = about["max_length"] + 2
    source = min(_most_tokens(about, text), side)
    written = source if about["decode"] is None else min(_most_written(about, search, source), side)
    if about["stream"]:
        columns = min(source + written, about["stream"])
        told = written * columns
    else:
        columns = max(source, written)
        told = columns**2
    weights = SEEN_BYTES * columns**2 + (PACKED_BYTES if packed else PLAIN_BYTES) * told
    n_bytes: int = about["heads"] * weights + about["vocabulary"] * written * SCORE_BYTES
    return n_bytes


def _most_tokens(about: dict[str, Any], text: Asked) -> int:
    """Tokens of a text at most, special ones included; a GPT may spell by bytes."""
    if not about["stream"]:
        return n_characters(text) + 2
    said = [text] if isinstance(text, str) else text.values()
    return sum(len(part.encode("utf-8", "surrogatepass")) for part in said) + 2


def _most_written(about: dict[str, Any], search: dict[str, Any], source: int) -> int:
    """Tokens of an answer, its end counted, as far as the search says."""
    by_source: int = about["stream"] or int(search["max_ratio"] * source) + 10
    asked: int | None = search["max_length"]
    least: int = search["min_length"] + 1
    return max(by_source if asked is None else asked + 1, least)
