"""One text that waits for its answer, and which of those that wait are computed together."""

import asyncio
import json
import time
from collections.abc import Collection, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from regard.files.row import Asked
from regard.serve.limits import Limits

Purpose = Literal["answer", "follow", "explain", "listen"]
CLIENT: ContextVar[str] = ContextVar("client", default="")
"""Address of the client whose request is being handled."""


@dataclass(eq=False)
class Job:
    text: Asked
    purpose: Purpose = "answer"
    decode: dict[str, Any] = field(default_factory=dict)
    width: int = 1
    """Hypotheses kept while searching."""
    packed: bool = False
    uploads: tuple[str, ...] = ()
    """Inputs that are files, in base64."""
    units: int = 0
    """What its files become at most; texts are counted by their characters."""
    n_bytes: int = 0
    """Of its attention, estimated."""
    answer: "asyncio.Future[dict[str, Any]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Cancelled when nobody waits for it any more."""
    parts: "asyncio.Queue[str | None]" = field(default_factory=asyncio.Queue)
    """Of a stream: how the answer begins, whenever more of it is certain; None when there is an answer."""
    number: int = 1
    """Among the texts of its request."""
    client: str = field(default_factory=CLIENT.get)
    round: int = 0
    """When it has its turn: in every round each waiting request has one text."""
    n_texts: int = 1
    """Texts of its request."""
    tries: int = 0
    born: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.answer.add_done_callback(lambda _: self.parts.put_nowait(None))
        self.batch_key = f"{self.packed} {self.uploads} {json.dumps(self.decode, sort_keys=True)}"
        """Texts with the same may be computed together."""

    @property
    def n_characters(self) -> int:
        return self.units + n_characters(self.text, self.uploads)

    @property
    def turn(self) -> tuple[int, int, float]:
        """The order of fair queueing: by rounds, in each of them the smallest request first."""
        return self.round, self.n_texts, self.born

    @property
    def is_answered(self) -> bool:
        return self.answer.done() and not self.answer.cancelled()

    @property
    def is_alone(self) -> bool:
        """A stream is; and what was in the worker's hands when it died must not take others along."""
        return self.purpose != "answer" or self.tries > 0

    def goes_with(self, other: "Job") -> bool:
        return self.batch_key == other.batch_key and not (self.is_alone or other.is_alone)


def n_characters(asked: Asked, uploads: Collection[str] = ()) -> int:
    """What is asked, as it was sent: texts by their characters, anything else as JSON, but no files."""
    values = (
        [value for name, value in asked.items() if name not in uploads]
        if isinstance(asked, dict)
        else [asked]
    )
    return sum(len(value if isinstance(value, str) else json.dumps(value)) for value in values)


def chosen(waiting: Iterable[Job], limits: Limits) -> list[Job]:
    """The job whose turn it is, and those with the same settings that are nearest to it in length."""
    first, *others = sorted(waiting, key=lambda job: job.turn)
    alike = sorted(
        filter(first.goes_with, others), key=lambda job: abs(job.n_characters - first.n_characters)
    )
    batch, longest = [first], first.n_characters
    for job in alike:
        n, longest = len(batch) + 1, max(longest, job.n_characters)
        if (
            n > limits.batch_texts
            or n * longest > limits.batch_characters
            or n * job.width > limits.batch_beams
        ):
            break
        batch.append(job)
    return batch
