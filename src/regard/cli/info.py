from typing import Any

from regard.cli import console
from regard.cli.arguments import AsJson, Run
from regard.cli.baseline import show


def info(run: Run, json: AsJson = False) -> None:
    """Tell what a run or model folder holds, finished or not."""
    from regard.baselines.standing import Standing
    from regard.runs.describe import describe

    facts = describe(run)
    if json:
        console.write_json(facts)
        return
    console.line(f"{facts['folder']}: {facts['task']}", "bold")
    console.facts(_facts(facts))
    if facts["finished"]:
        console.OUT.print()
        console.scores(facts["training"]["scores"], facts["training"].get("intervals"))
        show(Standing.model_validate(facts["training"].get("baselines", {})))
    console.OUT.print()
    console.facts((console.size(n_bytes).rjust(7), name) for name, n_bytes in _summed(facts["files"]).items())


def _summed(files: dict[str, int]) -> dict[str, int]:
    """Sizes: the model's file by file, everything else folder by folder."""
    summed: dict[str, int] = {}
    for name, n_bytes in files.items():
        folder, inside, _ = name.partition("/")
        name_shown = f"{folder}/" if inside and folder in ("checkpoints", "task") else name
        summed[name_shown] = summed.get(name_shown, 0) + n_bytes
    return summed


def _facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
    vocabulary = ", ".join(f"{role} {size:,}" for role, size in facts["vocabulary"].items())
    lines = [
        ("model", facts["model"]),
        ("parameters", f"{facts['parameters']:,}"),
        ("vocabulary", vocabulary),
    ]
    if facts["labels"]:
        lines.append(("labels", _listed(facts["labels"])))
    if facts["data"]:
        lines += [
            (split, ", ".join(facts["data"][split]))
            for split in ("train", "valid", "test")
            if facts["data"][split]
        ]
    return [*lines, ("training", _training(facts))]


def _training(facts: dict[str, Any]) -> str:
    training = facts["training"]
    if facts["finished"]:
        return (
            f"finished at step {training['step']:,} after {training['minutes']:.1f} minutes "
            f"({training['stopped_by']}); kept the {training['weights']}"
        )
    if facts["data"] is None:
        return "elsewhere, before it was imported"
    best = training["best"]
    so_far = (
        f"best {best['metric']} {best['score']:.2f} at step {best['step']:,}" if best else "not validated yet"
    )
    go_on = f"go on with: regard train {facts['folder']}/recipe.json"
    return (
        f"not finished: step {training['step']:,} after {training['minutes']:.1f} minutes, {so_far}; {go_on}"
    )


def _listed(labels: list[str], most: int = 12) -> str:
    rest = f" and {len(labels) - most:,} more" if len(labels) > most else ""
    return ", ".join(labels[:most]) + rest
