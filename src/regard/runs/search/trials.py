"""The trials of a sweep: a recipe with other settings each, in a folder each, and what they scored."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from regard import durable
from regard.errors import RecipeError
from regard.metrics.metric import Metric
from regard.recipe import Recipe
from regard.runs.store import read_metrics
from regard.tasks import TASKS

ETA = 3
"""Each rung of a successive halving keeps one of so many trials and trains it so many times as long."""
NAME = "sweep.json"
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, None: 60}


@dataclass(frozen=True)
class Trial:
    """Values of the settings that a sweep varies, with a folder for the runs."""

    values: tuple[str, ...]
    overrides: tuple[str, ...]
    recipes: tuple[Recipe, ...]
    """One for each seed, without test data: a sweep chooses by validation data alone."""

    def shortened(self, recipe: Recipe, share: float, rung: int) -> Recipe:
        """The recipe with so much of its steps and epochs, in a folder for this rung."""
        plan, run = recipe.train, f"{recipe.run}-rung{rung}"
        limits = {
            name: max(1, round(share * limit))
            for name in ("max_steps", "max_epochs")
            if (limit := getattr(plan, name)) is not None
        }
        return recipe.model_copy(update={"run": run, "train": plan.model_copy(update=limits)})


@dataclass(frozen=True)
class Outcome:
    """Scores of a trial that was trained with every seed, as far as it was."""

    trial: Trial
    scores: tuple[float, ...]
    minutes: float
    rung: int
    """0, or how far it came in a successive halving."""

    @property
    def mean(self) -> float:
        return fmean(self.scores)

    @property
    def deviation(self) -> float:
        return stdev(self.scores) if len(self.scores) > 1 else 0.0


def seconds(text: str) -> float:
    """A span of time such as 30m, 2h or 90s; a number alone is minutes."""
    match = _SPAN.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise RecipeError(f"--budget {text}: write a time such as 30m, 2h or 90s")
    return float(match[1]) * _SECONDS[match[2]]


def trials(
    path: Path,
    fixed: Sequence[str],
    keys: Sequence[str],
    mixtures: Sequence[tuple[str, ...]],
    n_seeds: int,
    folder: Path,
) -> list[Trial]:
    """A trial for every mixture; all recipes are read, so that faults are seen before any training."""
    found = []
    for values in mixtures:
        overrides = tuple(f"{key}={value}" for key, value in zip(keys, values, strict=True))
        recipe = Recipe.read(path, [*fixed, *overrides])
        name = hashlib.sha256(json.dumps(overrides).encode()).hexdigest()[:8]
        found.append(
            Trial(
                values,
                overrides,
                tuple(
                    _prepared(recipe, recipe.seed + n, folder / f"{name}-{recipe.seed + n}")
                    for n in range(n_seeds)
                ),
            )
        )
    return found


def _prepared(recipe: Recipe, seed: int, run: Path) -> Recipe:
    """The recipe of one training, which leaves the test data alone and measures no baselines."""
    return recipe.model_copy(
        update={
            "run": str(run),
            "seed": seed,
            "data": recipe.data.model_copy(update={"test": None}),
            "train": recipe.train.model_copy(update={"baselines": False}),
        }
    )


def metric_of(recipe: Recipe) -> Metric:
    """The metric that chooses among trials."""
    kind: Any = TASKS[recipe.task.kind]
    metric: Metric = kind.metric
    return metric


def score_of(run: Path, metric: Metric) -> tuple[float, float]:
    """The validation score and the minutes of a finished run."""
    metrics = read_metrics(run)
    return float(metrics["scores"]["valid"][metric.name]), float(metrics.get("minutes", 0.0))


Train = Callable[[Recipe], None]


@dataclass
class Sweep:
    """Trains trials until all are done or the time is used up; what was done before is not done again."""

    metric: Metric
    train: Train
    budget: float | None = None
    """Seconds of training, those of earlier sessions too."""
    tell: Callable[[Outcome], None] = lambda outcome: None

    def __post_init__(self) -> None:
        self.outcomes: dict[tuple[str, ...], Outcome] = {}
        self.left_out: list[Trial] = []
        self.n_trained = 0
        self.spent = 0.0
        """Seconds of training so far."""

    @property
    def ranked(self) -> list[Outcome]:
        """Outcomes from the best: those of a higher rung first."""
        sign = 1 if self.metric.higher else -1
        return sorted(self.outcomes.values(), key=lambda one: (-one.rung, -sign * one.mean))

    def run(self, trials: Sequence[Trial]) -> None:
        """Train every trial to its end."""
        for trial in trials:
            self._attempt(trial, trial.recipes, 0)

    def halve(self, trials: Sequence[Trial]) -> None:
        """Train all for a short time, the best third of them anew for three times as long, and so on.

        This is successive halving (Jamieson & Talwalkar 2016); the last rung has the recipe's own length.
        """
        rungs = 1
        while ETA**rungs < len(trials):
            rungs += 1
        going = list(trials)
        for rung in range(rungs + 1):
            for trial in going:
                share = ETA ** (rung - rungs)
                short = [trial.shortened(recipe, share, rung) for recipe in trial.recipes]
                self._attempt(trial, short, rung)
            survivors = [one.trial for one in self.ranked if one.rung == rung]
            going = survivors[: max(1, len(going) // ETA)]

    def _attempt(self, trial: Trial, recipes: Sequence[Recipe], rung: int) -> None:
        if self._is_over():
            self.left_out.append(trial)
            return
        scores, minutes = [], 0.0
        for recipe in recipes:
            self.train(recipe)
            score, took = score_of(Path(recipe.run), self.metric)
            scores.append(score)
            minutes += took
        self.spent += 60 * minutes
        self.n_trained += 1
        outcome = Outcome(trial, tuple(scores), minutes, rung)
        self.outcomes[trial.values] = outcome
        self.tell(outcome)

    def _is_over(self) -> bool:
        """True if another trial like those before would not fit into the budget."""
        if self.budget is None or not self.n_trained:
            return False
        return self.spent + self.spent / self.n_trained > self.budget


def write(path: Path, keys: Sequence[str], metric: Metric, ranked: Sequence[Outcome]) -> None:
    """All outcomes as JSON, the best first."""
    value = {
        "format_version": 1,
        "metric": metric.name,
        "trials": [
            {
                "settings": dict(zip(keys, one.trial.values, strict=True)),
                "scores": one.scores,
                "mean": one.mean,
                "rung": one.rung,
                "minutes": one.minutes,
                "runs": [recipe.run for recipe in one.trial.recipes],
            }
            for one in ranked
        ],
    }
    durable.write_file(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def refuse_halving(recipe: Recipe) -> None:
    """Raise RecipeError where a training has no length to take a part of."""
    if recipe.train.max_steps is None and recipe.train.max_epochs is None:
        raise RecipeError("--halving takes parts of train.max_steps or train.max_epochs; give one of them")


def described(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in settings.items())
