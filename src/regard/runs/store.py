"""A model folder: a trained model on disk, in the form other tools expect.

config.json         configuration of model and task; format_version
model.safetensors   weights
tokenizer.json      or source/ and target/, each with one
metrics.json        scores, and how they were measured
README.md           the model card
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from regard import __version__, durable
from regard.baselines.standing import Standing
from regard.errors import CheckpointError, RecipeError, RunError
from regard.models import ModelConfig, Widths
from regard.models.meta import build_meta, max_tokens
from regard.tasks import TASKS, AnyTask, TaskConfig
from regard.tasks.task import typed
from regard.text.sanitize import finite
from regard.training.checkpoint import load_weights

FORMAT_VERSION = 1
MAX_CONFIG_BYTES = 1_000_000


def save_model(
    folder: Path,
    task: AnyTask,
    task_config: TaskConfig,
    model: nn.Module,
    model_config: ModelConfig,
    metrics: dict[str, Any],
) -> None:
    """Write a model folder, atomically."""

    def fill(partial: Path) -> None:
        config = {
            "format_version": FORMAT_VERSION,
            "regard_version": __version__,
            "task": task_config.model_dump(mode="json"),
            "model": model_config.model_dump(mode="json"),
            "widths": asdict(task.widths),
        }
        write_json(partial / "config.json", config)
        save_file(dict(model.state_dict()), partial / "model.safetensors", metadata={"format": "pt"})
        task.save(partial)
        write_scores(partial, task_config, model_config, model, metrics)

    try:
        durable.write_folder(folder, fill)
    except (OSError, SafetensorError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RunError(
            f"{folder}: cannot be written ({why}); make room and run the same command again"
        ) from None


def write_scores(
    folder: Path,
    task_config: TaskConfig,
    model_config: ModelConfig,
    model: nn.Module,
    metrics: dict[str, Any],
) -> None:
    """Write the scores and the model card into a model folder."""
    durable.write_file(
        folder / "metrics.json", json.dumps(finite(metrics), ensure_ascii=False, indent=1) + "\n"
    )
    durable.write_file(folder / "README.md", model_card(task_config, model_config, model, metrics))


def load_model(folder: Path) -> tuple[AnyTask, TaskConfig, nn.Module, ModelConfig, dict[str, Any]]:
    """Read a model folder, or the `model` folder of a run."""
    if not folder.exists():
        raise RunError(f"{folder}: no such run or model folder")
    if (folder / "model" / "config.json").is_file():
        folder = folder / "model"
    if not (folder / "config.json").is_file():
        unfinished = (folder / "checkpoints").is_dir()
        why = (
            "its training has not finished; run its regard train command again to resume it"
            if unfinished
            else "no config.json"
        )
        raise RunError(f"{folder}: not a trained model of regard ({why})")
    config = read_json(folder / "config.json")
    if isinstance(config.get("format_version"), int) and "encoder" in config:
        raise RunError(
            f"{folder}: is only an encoder, which gives no answers; embed texts with regard embed, or "
            "start a training from it with model.init_from"
        )
    check_format(folder, config, "task")
    try:
        task_config: TaskConfig = TypeAdapter(TaskConfig).validate_python(config["task"])
        model_config: ModelConfig = TypeAdapter(ModelConfig).validate_python(config["model"])
        widths = Widths(**config["widths"])
        if not all(isinstance(width, dict) for width in (widths.input, widths.target)):
            raise TypeError("its widths are not tables")
    except ValidationError as error:
        fault = error.errors()[0]
        name = ".".join(map(str, fault["loc"][1:]))  # the first is the kind of task or model
        message = f"{name}: {fault['msg']}" if name else fault["msg"]
        raise CheckpointError(f"{folder / 'config.json'}: damaged ({message})") from error
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{folder / 'config.json'}: damaged ({str(error).splitlines()[0]})") from error
    most = max_tokens(model_config)
    needed = task_config.longest(model_config)
    if most is not None and most <= needed:
        raise CheckpointError(
            f"{folder / 'config.json'}: damaged, its model has {most} positions, but texts may have "
            f"{needed} tokens and an end"
        )
    task: AnyTask = TASKS[task_config.kind].load(task_config, folder)
    if task.widths != widths:
        ours, theirs = _apart(task.widths, widths)
        raise CheckpointError(
            f"{folder}: vocabulary and labels have {ours}, but config.json has {theirs}; "
            "copy the whole folder"
        )
    try:
        model = build_meta(model_config, task.widths)
    except RecipeError as error:
        raise CheckpointError(f"{folder / 'config.json'}: damaged ({error})") from error
    check_size(folder / "model.safetensors", model)
    model = model.to_empty(device="cpu")
    load_weights(folder / "model.safetensors", model)
    return task, task_config, model.eval(), model_config, _metrics(folder / "metrics.json")


def check_format(folder: Path, config: dict[str, Any], what: str) -> None:
    """Raise CheckpointError unless this regard can read a config.json with this entry (task or encoder)."""
    version = config.get("format_version")
    if not isinstance(version, int) or what not in config:
        raise CheckpointError(
            f"{folder / 'config.json'}: was not made by regard; train a "
            "model here, or import this one with regard import"
        )
    if version > FORMAT_VERSION:
        raise CheckpointError(
            f"{folder}: written by a newer regard (format {version}, this one reads {FORMAT_VERSION}); "
            "upgrade regard"
        )


def _apart(one: Widths, other: Widths) -> list[str]:
    """The widths in which two differ, written out for each."""
    flat = [_flat(widths) for widths in (one, other)]
    names = [name for name in {**flat[0], **flat[1]} if flat[0].get(name) != flat[1].get(name)]
    return [", ".join(f"{name} = {widths.get(name)!r}" for name in names) for widths in flat]


def _flat(widths: Widths) -> dict[str, Any]:
    parts = {"input": widths.input, "target": widths.target, "": {"shared": widths.shared}}
    return {f"{part} {name}".strip(): value for part, width in parts.items() for name, value in width.items()}


def read_metrics(folder: Path) -> dict[str, Any]:
    """The scores in a run or a model folder; none if it has not been trained to its end."""
    return _metrics((folder / "model" if (folder / "model").is_dir() else folder) / "metrics.json")


def _metrics(path: Path) -> dict[str, Any]:
    """The scores of a model folder; none if it has no metrics.json."""
    if not path.is_file():
        return {}
    metrics = read_json(path)
    if not _by_split(metrics.get("scores", {}), lambda value: isinstance(value, int | float | None)):
        raise CheckpointError(f"{path}: damaged (scores are not numbers by split)")
    if not _by_split(metrics.get("intervals", {}), _is_range):
        raise CheckpointError(f"{path}: damaged (intervals are not pairs of numbers by split)")
    try:
        Standing.model_validate(metrics.get("baselines", {}))
    except ValidationError as error:
        raise CheckpointError(f"{path}: damaged (baselines are not as training writes them)") from error
    return metrics


def _by_split(table: Any, is_right: Callable[[Any], bool]) -> bool:
    return isinstance(table, dict) and all(
        isinstance(split, dict) and all(map(is_right, split.values())) for split in table.values()
    )


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and [isinstance(end, int | float) for end in value] == [True, True]


def check_size(path: Path, model: nn.Module) -> None:
    """Refuse a config that needs more than the file holds, before anything is allocated."""
    if not path.is_file():
        raise CheckpointError(f"{path}: the weights are missing; copy the whole model folder")
    needed = sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())
    held = path.stat().st_size
    if held < needed:
        raise CheckpointError(
            f"{path}: has {held:,} bytes, but the model in config.json needs {needed:,}; is it truncated?"
        )


def model_card(
    task_config: TaskConfig, model_config: ModelConfig, model: nn.Module, metrics: dict[str, Any]
) -> str:
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    made = "Trained" if metrics else "Imported"
    lines = [
        "---",
        "library_name: regard",
        f"tags: [{task_config.kind}, {model_config.kind}]",
        "---",
        f"# {task_config.kind} with {model_config}",
        "",
        f"{n_parameters:,} parameters. {made} with regard {__version__}. Use it:",
        "",
        "```",
        f"regard predict THIS_FOLDER {typed(TASKS[task_config.kind], task_config)}",
        f"regard explain THIS_FOLDER {typed(TASKS[task_config.kind], task_config)}",
        "```",
        "",
        "## Scores",
        "",
        "| split | metric | value | 95 % interval |",
        "|---|---|---|---|",
    ]
    for split, scores in metrics.get("scores", {}).items():
        ranges = metrics.get("intervals", {}).get(split, {})
        lines += [_score_row(split, name, value, ranges.get(name, ())) for name, value in scores.items()]
    lines += _baseline_lines(Standing.model_validate(metrics.get("baselines", {})))
    lines += ["", *(f"`{name}`: {signature}" for name, signature in metrics.get("signatures", {}).items())]
    return "\n".join(lines) + "\n"


def _baseline_lines(standing: Standing) -> list[str]:
    """Scores of baselines, for the model card."""
    if not standing.scores:
        return []
    rows = [
        _score_row(baseline, name, value, standing.intervals.get(baseline, {}).get(name, ()))
        for baseline, scores in standing.scores.items()
        for name, value in scores.items()
    ]
    title = f"Baselines on {standing.split}:"
    verdict = ["", f"This model is {standing.verdict}."] if standing.verdict else []
    return [
        "",
        title,
        "",
        "| baseline | metric | value | 95 % interval |",
        "|---|---|---|---|",
        *rows,
        *verdict,
    ]


def _score_row(owner: str, name: str, value: float | None, interval: Sequence[float]) -> str:
    within = " to ".join(f"{end:.4g}" for end in interval)
    return f"| {owner} | {name} | {'∞' if value is None else f'{value:.4g}'} | {within} |"


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(finite(value), ensure_ascii=False, indent=1) + "\n", "utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a small untrusted file."""
    try:
        value = durable.read_json(path, MAX_CONFIG_BYTES)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); is it a model folder?") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: cannot be read as JSON ({error}); is it truncated?") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: should hold a JSON object")
    return value
