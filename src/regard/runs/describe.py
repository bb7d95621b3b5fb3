"""A description of a run or model folder as plain data; an unfinished run is described by what it
has so far.
"""

from pathlib import Path
from typing import Any

from torch import nn

from regard.errors import RunError
from regard.models import ModelConfig
from regard.models.meta import build_meta
from regard.recipe import Recipe
from regard.runs.store import load_model
from regard.tasks import TASKS, AnyTask
from regard.training.journal import entries


def describe(folder: Path) -> dict[str, Any]:
    """Task, model, sizes, vocabulary, training, scores and files; every value is ready for JSON."""
    recipe = Recipe.read(folder / "recipe.json") if (folder / "recipe.json").is_file() else None
    if recipe is None or (folder / "model" / "config.json").is_file():
        task, _, model, model_config, metrics = load_model(folder)
    else:
        task, model, model_config, metrics = *_unfinished(folder, recipe), {}
    return {
        "folder": str(folder),
        "finished": (finished := _is_of_finished_run(metrics)),
        "task": task.kind,
        "model": str(model_config),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "vocabulary": {role: len(tokenizer) for role, tokenizer in task.tokenizers.items()},
        "labels": list(getattr(task, "labels", ())),
        "data": None if recipe is None else recipe.data.model_dump(mode="json"),
        "training": metrics if finished else progress(folder / "metrics.jsonl", task.metric.name),
        "files": {str(path.relative_to(folder)): path.stat().st_size for path in _files(folder)},
    }


def _is_of_finished_run(metrics: dict[str, Any]) -> bool:
    return (
        {"scores", "step", "minutes", "stopped_by", "weights"} <= metrics.keys()
        and isinstance(metrics["step"], int)
        and isinstance(metrics["minutes"], int | float)
    )


def _unfinished(folder: Path, recipe: Recipe) -> tuple[AnyTask, nn.Module, ModelConfig]:
    if not (folder / "task").is_dir():
        raise RunError(
            f"{folder}: has a recipe but no vocabulary, so training has not begun; "
            "run its regard train command again"
        )
    kind: type[AnyTask] = TASKS[recipe.task.kind]
    task = kind.load(recipe.task, folder / "task")
    return task, build_meta(recipe.model, task.widths), recipe.model


def progress(journal: Path, metric: str) -> dict[str, Any]:
    """Progress of an unfinished training; a last line truncated by a crash is skipped."""
    step, seconds, best = 0, 0.0, None
    for entry in entries(journal):
        step, seconds = entry.get("step", step), entry.get("seconds", seconds)
        if entry["event"] == "evaluated" and entry.get("best") and metric in entry.get("metrics", ()):
            best = {"step": entry["step"], "metric": metric, "score": entry["metrics"][metric]}
    return {"step": step, "minutes": round(seconds / 60, 2), "best": best}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
