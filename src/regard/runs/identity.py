"""The identity of a run: all its result depends on, saved at its beginning and compared when it is resumed.

A run that is resumed with the same identity ends with the same bits as one that was never interrupted.
"""

import json
import platform
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from regard import durable
from regard.errors import CheckpointError, RecipeError, RunError
from regard.files.fingerprint import fingerprints
from regard.files.formats import file_format
from regard.files.read import read_rows
from regard.recipe import Recipe
from regard.training.machine import has_bfloat16

NAME = "identity.json"
FORMAT_VERSION = 1
NOT_COMPARED = (
    "recipe.run",
    "recipe.train.log_every",
    "recipe.train.save_every",
    "recipe.train.save_minutes",
    "recipe.train.workers",
    "recipe.train.baselines",
    "recipe.train.tensorboard",
)
"""Settings that do not change the result: where a run is, and what it writes on the way."""


def identity(
    recipe: Recipe, base: Path, vocabulary: Path, memo: Path, weights: Path | None = None
) -> dict[str, Any]:
    """The identity, flat, so that each difference has a name: recipe.train.lr, data.train.en, torch.

    `weights` are those that the model starts from, if they are not random.
    """
    data = recipe.data
    files = sorted({*data.train, *(data.valid or ()), *(data.test or ()), *filter(None, [data.titles])})
    return {
        **of_recipe(recipe),
        **{
            f"data.{file}": sha256
            for file, sha256 in fingerprints(files, base, memo, leads_to(recipe, base)).items()
        },
        **{
            f"vocabulary.{path.relative_to(vocabulary).as_posix()}": durable.sha256(path)
            for path in sorted(vocabulary.rglob("*.json"))
        },
        **({} if weights is None else {f"weights.{weights.name}": durable.sha256(weights)}),
        "torch": torch.__version__,
        "machine": _machine(),
    }


HOLDING = ("npy", "npz", "idx")
"""Formats of files that hold what rows refer to, such as pictures."""


def leads_to(recipe: Recipe, base: Path) -> Callable[[str], Iterator[Path]]:
    """A function that finds the files that rows of a data file refer to, such as pictures."""
    fields = recipe.task.unfitted
    columns = {
        role: column for role, column in recipe.columns().items() if role in fields and fields[role].suffixes
    }

    def files(name: str) -> Iterator[Path]:
        if not columns or file_format(name) in HOLDING:
            return
        for row in read_rows([name], columns, fields=fields, encoding=recipe.data.encoding, base=base):
            yield from (Path(cell) for cell in row.cells.values() if isinstance(cell, str))

    return files


def _machine() -> str:
    """The properties of the machine that its arithmetic depends on."""
    units = " bfloat16" * has_bfloat16(torch.device("cpu"))
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}{units}"


def of_recipe(recipe: Recipe) -> dict[str, Any]:
    return dict(_flat("recipe", recipe.model_dump(mode="json")))


def write(folder: Path, current: dict[str, Any], accepted: list[dict[str, Any]]) -> None:
    value = {"format_version": FORMAT_VERSION, "identity": current, "accepted_changes": accepted}
    durable.write_file(folder / NAME, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def read(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The saved identity and the changes accepted since; settings newer than the run have their defaults."""
    path = folder / NAME
    try:
        value = durable.read_json(path)
        version, saved, accepted = value["format_version"], value["identity"], value["accepted_changes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); start over with --fresh") from error
    if version > FORMAT_VERSION:
        raise CheckpointError(
            f"{path}: written by a newer regard (format {version}, this one reads {FORMAT_VERSION}); "
            "upgrade regard"
        )
    with suppress(RecipeError):  # a setting that no longer exists is reported as a change
        saved = of_recipe(Recipe.read(folder / "recipe.json")) | saved
    return saved, accepted


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[dict[str, Any]]:
    """Keys that differ, with both values."""
    differing = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return [
        {"key": key, "was": before.get(key), "is": now.get(key)}
        for key in differing
        if key not in NOT_COMPARED
    ]


def refuse(folder: Path, changed: list[dict[str, Any]]) -> None:
    """Raise RunError for the first change that was not accepted."""
    if not changed:
        return
    key, was, now = (changed[0][part] for part in ("key", "was", "is"))
    others = [str(change["key"]) for change in changed[1:]]
    rest = f" (and {', '.join(others[:4])}{' …' * (len(others) > 4)} changed too)" if others else ""
    how = (
        "has changed"
        if key.startswith(("data.", "vocabulary.", "weights."))
        else f"was {_shown(was)} and is now {_shown(now)}"
    )
    raise RunError(
        f"{folder}: {key} {how}{rest} since this run began, so it would end with another result; change it "
        "back, go on anyway with --accept-changes, start over with --fresh, or choose another run=NAME"
    )


def _shown(value: Any) -> str:
    """A value as a user would write it; TOML has no None."""
    return "not set" if value is None else repr(value)


def _flat(prefix: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [pair for key, part in value.items() for pair in _flat(f"{prefix}.{key}", part)]
    return [(prefix, value)]
