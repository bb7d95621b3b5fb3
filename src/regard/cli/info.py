from typing import Any

from regard.cli import console
from regard.cli.arguments import AsJson, Run
from regard.cli.baseline import show


def info(run: Run, json: AsJson = False) -> None:
    """Tell what a run or model folder holds, finished or not."""
    from regard.baselines.standing import Standing
    from regard.runs.describe import describe

    found = describe(run)
    if json:
        console.write_json(found)
        return
    console.line(f"{found['folder']}: {found['task']}", "bold")
    console.facts(_facts(found))
    if found["finished"]:
        console.OUT.print()
        console.scores(found["training"]["scores"], found["training"].get("intervals"))
        show(Standing.model_validate(found["training"].get("baselines", {})))
    console.OUT.print()
    console.facts((console.size(n_bytes).rjust(7), name) for name, n_bytes in _summed(found["files"]).items())


def _summed(files: dict[str, int]) -> dict[str, int]:
    """Sizes: the model's file by file, everything else folder by folder."""
    summed: dict[str, int] = {}
    for name, n_bytes in files.items():
        folder, inside, _ = name.partition("/")
        shown = f"{folder}/" if inside and folder in ("checkpoints", "task") else name
        summed[shown] = summed.get(shown, 0) + n_bytes
    return summed


def _facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    vocabulary = ", ".join(f"{role} {size:,}" for role, size in found["vocabulary"].items())
    told = [
        ("model", found["model"]),
        ("parameters", f"{found['parameters']:,}"),
        ("vocabulary", vocabulary),
    ]
    if found["labels"]:
        told.append(("labels", _listed(found["labels"])))
    if found["data"]:
        told += [
            (split, ", ".join(found["data"][split]))
            for split in ("train", "valid", "test")
            if found["data"][split]
        ]
    return [*told, ("training", _training(found))]


def _training(found: dict[str, Any]) -> str:
    training = found["training"]
    if found["finished"]:
        return (
            f"finished at step {training['step']:,} after {training['minutes']:.1f} minutes "
            f"({training['stopped_by']}); kept the {training['weights']}"
        )
    if found["data"] is None:
        return "elsewhere, before it was imported"
    best = training["best"]
    so_far = (
        f"best {best['metric']} {best['score']:.2f} at step {best['step']:,}" if best else "not validated yet"
    )
    go_on = f"go on with: regard train {found['folder']}/recipe.json"
    return (
        f"not finished: step {training['step']:,} after {training['minutes']:.1f} minutes, {so_far}; {go_on}"
    )


def _listed(labels: list[str], most: int = 12) -> str:
    rest = f" and {len(labels) - most:,} more" if len(labels) > most else ""
    return ", ".join(labels[:most]) + rest
