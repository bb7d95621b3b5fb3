"""All runs below a folder on one board: what each is, how it was trained and what it scored."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.runs.search.page import Cell, plain, table
from regard.runs.store import read_json, read_metrics
from regard.tasks import TASKS

MOST_RUNS = 10_000
DEPTH = 3
"""Folders below the one given that are looked into."""


@dataclass(frozen=True)
class Entry:
    """A run on the board."""

    name: str
    task: str
    model: str
    data: str
    seed: int
    minutes: float | None
    split: str
    """The split of the scores; empty while the run is not finished."""
    scores: Mapping[str, float]
    intervals: Mapping[str, Sequence[float]]
    baseline: float | None = None
    """The score of the best baseline on the same rows."""

    @property
    def metric(self) -> str:
        kind: Any = TASKS.get(self.task)
        return kind.metric.name if kind is not None else next(iter(self.scores), "")

    @property
    def score(self) -> float | None:
        return self.scores.get(self.metric)


def entries(folder: Path) -> tuple[list[Entry], list[str]]:
    """The runs below a folder, the best of each task first, and a sentence on each that cannot be read."""
    found: list[Entry] = []
    faults: list[str] = []
    for run in _runs(folder, DEPTH):
        if len(found) == MOST_RUNS:
            faults.append(f"{folder}: more than {MOST_RUNS:,} runs; the others are left out")
            break
        try:
            found.append(_entry(run, folder))
        except RegardError as fault:
            faults.append(str(fault))
    return sorted(found, key=_order), faults


def _order(entry: Entry) -> tuple[Any, ...]:
    kind: Any = TASKS.get(entry.task)
    sign = -1 if kind is None or kind.metric.higher else 1
    score = entry.score
    return entry.task, entry.data, score is None, 0.0 if score is None else sign * score, entry.name


def _runs(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / "recipe.json").is_file():
        yield folder
    elif depth:
        try:
            inner = sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")
        except OSError:
            return
        for path in inner:
            yield from _runs(path, depth - 1)


def _entry(run: Path, folder: Path) -> Entry:
    recipe, metrics = read_json(run / "recipe.json"), read_metrics(run)
    task, model, data = (recipe.get(part, {}) for part in ("task", "model", "data"))
    by_split = metrics.get("scores", {})
    split = next((name for name in ("test", "valid") if name in by_split), "")
    scores = {name: score for name, score in by_split.get(split, {}).items() if score is not None}
    kind: Any = TASKS.get(task.get("kind"))
    standing = metrics.get("baselines", {})
    best = standing.get("scores", {}).get(standing.get("best") or "", {})
    encoder = model.get("encoder") or {}
    return Entry(
        name=run.relative_to(folder).as_posix() if run != folder else run.name,
        task=str(task.get("kind", "?")),
        model=" ".join(str(part["kind"]) for part in (encoder, model) if "kind" in part),
        data=", ".join(map(str, data.get("train", ()))),
        seed=int(recipe.get("seed", 0)),
        minutes=metrics.get("minutes"),
        split=split,
        scores=scores,
        intervals=metrics.get("intervals", {}).get(split, {}),
        baseline=None if kind is None else best.get(kind.metric.name),
    )


def scored(entry: Entry) -> str:
    """`81.20 [79.40, 83.00]`, or what there is instead."""
    if entry.score is None:
        return "not finished" if not entry.split else "—"
    interval = entry.intervals.get(entry.metric)
    return f"{entry.score:.2f}" + ("" if interval is None else f" [{interval[0]:.2f}, {interval[1]:.2f}]")


def board(found: Sequence[Entry]) -> str:
    """The body of the page: a table for each task."""
    parts = []
    for task in dict.fromkeys(entry.task for entry in found):
        rows = [entry for entry in found if entry.task == task]
        others = sorted({name for entry in rows for name in entry.scores} - {rows[0].metric})
        header = ["run", "model", "data", "seed", "minutes", "split", rows[0].metric, "baseline", *others]
        parts.append(f"<h2>{plain(task)}</h2>")
        parts.append(f'<div class="wide">{table(header, [_row(entry, others) for entry in rows])}</div>')
    return "".join(parts)


def _row(entry: Entry, others: Sequence[str]) -> list[Cell]:
    minutes = Cell("") if entry.minutes is None else Cell(f"{entry.minutes:.1f}", entry.minutes)
    return [
        Cell(entry.name),
        Cell(entry.model),
        Cell(entry.data),
        Cell(str(entry.seed), entry.seed),
        minutes,
        Cell(entry.split),
        Cell(scored(entry), entry.score),
        Cell("") if entry.baseline is None else Cell(f"{entry.baseline:.2f}", entry.baseline),
        *(
            Cell(f"{entry.scores[name]:.2f}", entry.scores[name]) if name in entry.scores else Cell("")
            for name in others
        ),
    ]
