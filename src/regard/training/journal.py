"""Journal of a training in metrics.jsonl."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.durable import write_file
from regard.text.sanitize import finite
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

INCIDENTS = ("rolled_back", "save_failed", "skipped")
"""Events that stay on record when training returns to an earlier step."""


SUMS = ("tokens", "waited", "took", "saving")
"""What a line of a step sums up over the steps since the last one."""


class Journal:
    """Journal with a line every few steps, and per validation, checkpoint and incident; rewound on resuming.

    If a line cannot be written it is lost, and training continues.
    """

    def __init__(self, path: Path, every: int, resumed_step: int = 0) -> None:
        self.path, self.every = path, every
        self.since: defaultdict[str, float]
        """Tokens and seconds since the last written step; every checkpoint's line holds them too."""
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
                self._append({"event": "saved", "step": event.step} | self.since)
            case RolledBack():
                self._rewind(event.step, keep=INCIDENTS)
                self._write(event)
            case Evaluated() | Skipped() | SaveFailed() | Split() | Finished():
                self._write(event)

    def _write(self, event: Any, **since: float) -> None:
        self._append({"event": _snake(type(event).__name__)} | asdict(event) | since)

    def _append(self, entry: dict[str, Any]) -> None:
        with suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(finite(entry), allow_nan=False) + "\n")

    def _rewind(self, step: int, keep: tuple[str, ...] = ()) -> None:
        """Delete the steps that will be repeated and a former end; take over the sums of the checkpoint."""
        kept = [
            entry
            for entry in entries(self.path)
            if entry["event"] != "finished" and (entry["step"] <= step or entry["event"] in keep)
        ]
        of_step = [entry for entry in kept if (entry["event"], entry["step"]) == ("saved", step)]
        saved = of_step[-1] if of_step else {}
        sums = {name: saved[name] for name in SUMS if isinstance(saved.get(name), int | float)}
        self.since = defaultdict(int, sums)
        with suppress(OSError):
            write_file(self.path, "".join(json.dumps(entry) + "\n" for entry in kept))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """Complete entries of a journal; a crash may have truncated the last one."""
    for line in path.read_text("utf-8", "replace").splitlines() if path.is_file() else ():
        with suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and "event" in entry and isinstance(entry.get("step"), int):
                yield entry
