"""metrics.jsonl: what training said, kept beside it."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.durable import write_file
from regard.text.plain import finite
from regard.training.events import (
    Evaluated,
    Event,
    Finished,
    RolledBack,
    Saved,
    SaveFailed,
    Skipped,
    Split,
    Step,
)

LASTING = ("rolled_back", "save_failed", "skipped")
"""Mishaps, which stay on record when training goes back past them."""


class Journal:
    """metrics.jsonl: a line every few steps, one per validation and mishap; rewound to the step resumed from.

    A disk that refuses a line loses that line, not the training.
    """

    def __init__(self, path: Path, every: int, resumed_step: int = 0) -> None:
        self.path, self.every = path, every
        self.since: defaultdict[str, float] = defaultdict(int)
        """Tokens and seconds since the last line of a step."""
        self._rewind(resumed_step)

    def __call__(self, event: Event) -> None:
        match event:
            case Step():
                self.since["tokens"] += event.tokens
                self.since["waited"] += event.waited
                self.since["took"] += event.took
                if event.step % self.every == 0:
                    self._write(event, **self.since)
                    self.since.clear()
            case Saved():
                self.since["saving"] += event.took
            case RolledBack():
                self._rewind(event.step, keep=LASTING)
                self._write(event)
            case Evaluated() | Skipped() | SaveFailed() | Split() | Finished():
                self._write(event)

    def _write(self, event: Any, **since: float) -> None:
        entry = {"event": _snake(type(event).__name__)} | asdict(event) | since
        with suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(finite(entry), allow_nan=False) + "\n")

    def _rewind(self, step: int, keep: tuple[str, ...] = ()) -> None:
        """Forget the steps that will be done again, and an end that is no longer one."""
        kept = (
            entry
            for entry in entries(self.path)
            if entry["event"] != "finished" and (entry["step"] <= step or entry["event"] in keep)
        )
        with suppress(OSError):
            write_file(self.path, "".join(json.dumps(entry) + "\n" for entry in kept))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a journal; a crash may have cut one off."""
    for line in path.read_text("utf-8", "replace").splitlines() if path.exists() else ():
        with suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and "event" in entry and isinstance(entry.get("step"), int):
                yield entry
