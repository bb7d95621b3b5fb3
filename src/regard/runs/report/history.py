"""The history of a run: its journal as series of numbers."""

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from regard import durable
from regard.errors import RunError
from regard.runs.lock import is_held
from regard.training.journal import entries

Points = list[tuple[float, float]]
"""(step, value)."""

MISHAPS = {
    "skipped": "update skipped, loss {loss}, gradient {grad_norm}",
    "rolled_back": "rolled back from step {from_step}",
    "save_failed": "checkpoint not written: {why}",
}
NEEDED: dict[str, dict[str, Any]] = {
    "step": {"seconds": int | float, "unit": str},
    "evaluated": {"seconds": int | float, "metrics": dict, "samples": list},
    "finished": {"seconds": int | float, "reason": str},
}
"""Keys that an entry of each kind must have."""
PARTS = ("input", "expected", "answer")
"""Keys that a sample must have."""


@dataclass
class History:
    run: Path
    recipe: dict[str, Any]
    model: dict[str, Any]
    """The metrics.json of the finished model; empty before."""
    steps: list[dict[str, Any]] = field(default_factory=list)
    validations: list[dict[str, Any]] = field(default_factory=list)
    mishaps: list[tuple[int, str]] = field(default_factory=list)
    finished: dict[str, Any] | None = None
    is_training: bool = False

    @classmethod
    def read(cls, run: Path) -> Self:
        """Read the current state of a run; lines of its journal that training did not write are left out."""
        if not (run / "recipe.json").is_file():
            raise RunError(f"{run}: not a run folder (it has no recipe.json)")
        history = cls(run, _json(run / "recipe.json"), _json(run / "model" / "metrics.json"))
        history.is_training = is_held(run)
        for entry in entries(run / "metrics.jsonl"):
            if not _is_whole(entry):
                continue
            match entry["event"]:
                case "step":
                    history.steps.append(entry)
                case "evaluated":
                    history.validations.append(entry)
                case "finished":
                    history.finished = entry
                case mishap if mishap in MISHAPS:
                    history.mishaps.append((entry["step"], MISHAPS[mishap].format_map(_shown(entry))))
        return history

    @property
    def metric(self) -> str:
        """The metric that decides: the first after the loss."""
        names = [name for entry in self.validations for name in entry["metrics"] if name != "loss"]
        return names[0] if names else ""

    @property
    def best(self) -> float | None:
        """The score of the best validation so far, as training judged it."""
        judged = [e["metrics"].get(self.metric) for e in self.validations if e.get("best")]
        return judged[-1] if judged else None

    @property
    def step(self) -> int:
        return max((entry["step"] for entry in (*self.steps, *self.validations)), default=0)

    @property
    def seconds(self) -> float:
        ended = [self.finished] if self.finished else []
        return max((entry["seconds"] for entry in (*self.steps, *self.validations, *ended)), default=0.0)

    @property
    def state(self) -> str:
        if self.finished:
            return f"finished: {self.finished['reason']}"
        return "training" if self.is_training else "stopped"

    def series(self, name: str) -> Points:
        """A series of the steps: loss, lr or grad_norm."""
        return [(e["step"], e[name]) for e in self.steps if isinstance(e.get(name), int | float)]

    def validated(self, name: str) -> Points:
        points = ((e["step"], e["metrics"].get(name)) for e in self.validations)
        return [(step, value) for step, value in points if isinstance(value, int | float)]

    @property
    def throughput(self) -> Points:
        """Tokens, or texts, a second of learning."""
        return [(e["step"], e["tokens"] / e["took"]) for e in self.steps if e.get("took")]

    @property
    def unit(self) -> str:
        return str(self.steps[-1]["unit"]) if self.steps else "tokens"

    @property
    def spent(self) -> dict[str, float]:
        """Seconds by activity."""
        spent = {
            "learning": sum(entry.get("took", 0.0) for entry in self.steps),
            "waiting for data": sum(entry.get("waited", 0.0) for entry in self.steps),
            "validating": sum(entry.get("took", 0.0) for entry in self.validations),
            "saving": sum(entry.get("saving", 0.0) for entry in self.steps),
        }
        return spent | {"other": max(0.0, self.seconds - sum(spent.values()))}

    @property
    def samples(self) -> list[tuple[dict[str, str], list[tuple[int, str]]]]:
        """Each sample with its answers and their steps; repeated answers are left out."""
        by_input: dict[str, tuple[dict[str, str], list[tuple[int, str]]]] = {}
        for entry in self.validations:
            for sample in entry.get("samples", ()):
                _, answers = by_input.setdefault(sample["input"], (sample, []))
                if not answers or answers[-1][1] != sample["answer"]:
                    answers.append((entry["step"], sample["answer"]))
        return list(by_input.values())


def _is_whole(entry: dict[str, Any]) -> bool:
    """True if an entry has everything that the report reads."""
    needed = NEEDED.get(entry["event"], {})
    if not all(isinstance(entry.get(name), kind) for name, kind in needed.items()):
        return False
    return all(
        isinstance(sample, dict) and all(isinstance(sample.get(part), str) for part in PARTS)
        for sample in entry.get("samples", ())
    )


def _shown(entry: dict[str, Any]) -> defaultdict[str, Any]:
    """The entry with `?` for numbers that were not finite, and so were written as null."""
    return defaultdict(lambda: "?", {key: value for key, value in entry.items() if value is not None})


def _json(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        value = durable.read_json(path)
        if isinstance(value, dict):
            return value
    return {}
