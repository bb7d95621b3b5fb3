"""Scores of baselines on the rows that a model is scored on, and the comparison of the model with the best.

They learn from the training rows of the recipe, or a fair sample if there are very many, in seconds.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from regard.baselines import Baseline
from regard.baselines.standing import Standing
from regard.data.sample import thinned
from regard.errors import RegardError
from regard.files.row import Row
from regard.interop.pretrained import load_pretrained, resolve
from regard.metrics.metric import Metric
from regard.metrics.resample import Difference, Weighable, differences, intervals
from regard.models import EncodingConfig
from regard.recipe import Recipe
from regard.runs.corpus import Corpus
from regard.tasks import AnyTask
from regard.tasks.task import Tally
from regard.text.sanitize import finite

MOST_READ = 5_000_000
"""Most training rows that are read after a training."""
MOST_LEARNT_FROM = 5_000_000
"""Most characters of the rows that baselines learn from."""
ROW = 100
"""Characters that each row counts in addition."""
BY_CHANCE = 0.05
"""Significance level: a difference with a larger p counts as chance."""


@dataclass(frozen=True)
class Score:
    """The scores of one baseline."""

    name: str
    metrics: dict[str, float]
    seconds: float
    """Time of learning and answering."""
    tally: Tally = field(repr=False)

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        return intervals(self.tally) if isinstance(self.tally, Weighable) else {}


@dataclass(frozen=True)
class Baselines:
    metric: Metric
    split: str
    n_learnt_from: int
    n_read: int
    scores: tuple[Score, ...]
    notes: tuple[str, ...]
    """Reasons why some were not measured, a sentence each."""

    @property
    def best(self) -> Score | None:
        """The best by the metric of the task."""
        sign = 1 if self.metric.higher else -1
        able = [score for score in self.scores if self.metric.name in score.metrics]
        return max(able, key=lambda score: sign * score.metrics[self.metric.name], default=None)

    @property
    def alone(self) -> Standing:
        """The scores without a model's."""
        return Standing(
            split=self.split,
            learnt_from=self.n_learnt_from,
            of=self.n_read,
            metric=self.metric.name,
            scores={score.name: finite(score.metrics) for score in self.scores},
            intervals={score.name: score.intervals for score in self.scores},
            seconds={score.name: round(score.seconds, 2) for score in self.scores},
            notes=self.notes,
        )

    def beside(self, tally: Tally, recipe: Recipe, stopped_by: str = "") -> Standing:
        """The scores and their comparison with a model of this tally."""
        best = self.best
        if best is None:
            return self.alone
        apart = None
        if isinstance(tally, Weighable) and isinstance(best.tally, Weighable):
            apart = differences(tally, best.tally).get(self.metric.name)
        score, to_beat = (part.metrics()[self.metric.name] for part in (tally, best.tally))
        comparison: dict[str, Any] = {
            "best": best.name,
            "verdict": verdict(self.metric, best.name, score, to_beat, apart, advice(recipe, stopped_by)),
            "is_beaten": self.metric.is_better(score, to_beat) and not by_chance(apart),
        }
        if apart is not None:
            comparison |= {"difference": (apart.value, *apart.interval), "p": apart.p}
        return self.alone.model_copy(update=comparison)


def verdict(
    metric: Metric, name: str, score: float, to_beat: float, apart: Difference | None, advice: str
) -> str:
    """One sentence that compares a model's score with the best baseline's."""
    p = "" if apart is None else f", p = {apart.p:.4f}"
    beside = f"the baseline {name} ({metric.name} {to_beat:.2f}; {score - to_beat:+.2f}{p})"
    if by_chance(apart) or score == to_beat:
        return f"no better than {beside}: {advice}"
    return f"better than {beside}" if metric.is_better(score, to_beat) else f"worse than {beside}: {advice}"


def by_chance(apart: Difference | None) -> bool:
    return apart is not None and apart.p > BY_CHANCE


def advice(recipe: Recipe, stopped_by: str) -> str:
    """Advice for a model that does not beat the best baseline."""
    ways = []
    if stopped_by.startswith("max_"):
        ways.append(f"train longer (it was stopped by {stopped_by})")
    if isinstance(recipe.model, EncodingConfig) and recipe.model.init_from is None:
        ways.append("start from a trained encoder (model.init_from)")
    return ", ".join([*ways, "give it more data", "or use the baseline"])


def measured(
    task: AnyTask,
    rows: Sequence[Row],
    n_read: int,
    examples: Sequence[Any],
    split: str,
    tick: Callable[[str], None] = lambda name: None,
) -> Baselines:
    """Score every baseline that suits the task; `tick` is called with the name of each before it begins."""
    scores, notes = [], []
    for baseline in suitable(task):
        tick(baseline.name)
        began = time.perf_counter()
        try:
            tally = task.tally(examples, baseline.fit(task, rows).answers(examples))
            scores.append(Score(baseline.name, tally.metrics(), time.perf_counter() - began, tally))
        except RegardError as fault:
            notes.append(f"{baseline.name}: not measured ({fault})")
    return Baselines(task.metric, split, len(rows), n_read, tuple(scores), tuple(notes))


def suitable(task: AnyTask) -> list[type[Baseline]]:
    """The baselines that can read the task's input."""
    return [baseline for baseline in task.baselines if baseline.suits(task)]


def training_rows(rows: Iterator[Row]) -> tuple[list[Row], int]:
    """Rows to learn from, a sample if there are very many, and how many there are."""
    return thinned(rows, MOST_LEARNT_FROM, _size)


def of_corpus(
    corpus: Corpus,
    task: AnyTask,
    examples: Sequence[Any],
    split: str,
    tick: Callable[[str], None] = lambda name: None,
) -> Baselines:
    """The baselines of a trained recipe on examples that its model was scored on."""
    rows, n_read = training_rows(islice(corpus.learnt([]), MOST_READ))
    return measured(task, rows, n_read, examples, split, tick)


def of_recipe(recipe: Recipe, base: Path, tick: Callable[[str], None]) -> Baselines:
    """The baselines of a recipe, trained or not; nothing is written."""
    pretrained = load_pretrained(recipe, base)
    recipe = resolve(recipe, pretrained)
    corpus = Corpus(recipe, base)
    task = corpus.fit(None if pretrained is None else pretrained.vocabulary)
    scored = corpus.scored(task)
    held_out: list[Row] = []
    rows, n_read = training_rows(corpus.learnt(held_out))
    split = "test" if "test" in scored else "valid"
    return measured(task, rows, n_read, scored.get(split) or corpus.held_out(task, held_out), split, tick)


def _size(row: Row) -> int:
    return ROW + sum(len(cell) for cell in row.cells.values() if isinstance(cell, str | list))
