"""What `regard init` writes, beside the obvious baseline: `python bench/first_hour.py DATA OUT`.

For each labelled set (labelled_sets.py) a recipe is drafted as `regard init` does, trained from scratch and
scored beside tf-idf with logistic regression. `--set KEY=VALUE` overrides settings of all of them, `--rows`
learns from the first rows only, and `--split valid` compares without looking at the test data, as is done to
choose the defaults. A line of JSON a run is added to OUT/results.jsonl; what stands there is not run again.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from labelled_sets import SETS, make

import regard
from regard.init.detect import detect
from regard.init.draft import draft, plan
from regard.recipe import Recipe
from regard.training.machine import Machine


def shortened(folder: Path, rows: int | None) -> Path:
    """A copy of the set with the first training rows only, and as few others as there are of these."""
    if rows is None:
        return folder
    small = folder.with_name(f"{folder.name}-{rows}")
    small.mkdir(exist_ok=True)
    for split in ("train", "valid", "test"):
        lines = (folder / f"{split}.jsonl").read_text("utf-8").splitlines(keepends=True)
        (small / f"{split}.jsonl").write_text("".join(lines[:rows]), "utf-8")
    return small


def drafted(folder: Path, split: str) -> str:
    """The recipe that init writes."""
    splits = ("train", "valid") if split == "valid" else ("train", "valid", "test")
    guess = detect([str(folder / f"{name}.jsonl") for name in splits])
    return draft(plan(guess, Machine.here()), "runs/first")


def trained(folder: Path, run: Path, split: str, settings: list[str], seed: int) -> dict[str, Any]:
    """Scores of one training."""
    recipe = run.with_suffix(".toml")
    recipe.parent.mkdir(parents=True, exist_ok=True)
    recipe.write_text(drafted(folder, split), "utf-8")
    began = time.perf_counter()
    read = Recipe.read(recipe, [f"run={run}", f"seed={seed}", *settings])
    metrics = regard.train(read, quiet=True).metrics
    standing = metrics["baselines"]
    return {
        "metric": standing["metric"],
        "baseline": {name: scores[standing["metric"]] for name, scores in standing["scores"].items()},
        "seconds_of_baselines": standing["seconds"],
        "score": metrics["scores"][split][standing["metric"]],
        "difference": standing.get("difference"),
        "p": standing.get("p"),
        "step": metrics["step"],
        "stopped_by": metrics["stopped_by"],
        "minutes": metrics["minutes"],
        "seconds": round(time.perf_counter() - began, 1),
    }


def line_of(name: str, found: dict[str, Any]) -> str:
    baselines = ", ".join(f"{name[:6]} {score:.1f}" for name, score in found["baseline"].items())
    return (
        f"{name:11} {found['variant']:16} seed {found['seed']} {found['metric']:9} {found['score']:6.2f}"
        f" beside {baselines}; {found['stopped_by']} at {found['step']}, {found['seconds']:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="*", default=[*SETS])
    parser.add_argument("--variant", default="default", help="the name of these settings")
    parser.add_argument("--set", nargs="*", default=[], dest="settings")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--split", choices=("valid", "test"), default="test")
    given = parser.parse_args()
    results = given.out / "results.jsonl"
    given.out.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    for seed in given.seeds:
        for name in given.sets:
            what = {"set": name, "variant": given.variant, "rows": given.rows, "seed": seed}
            what |= {"split": given.split}
            found = next((one for one in done if all(one[key] == what[key] for key in what)), None)
            if found is None:
                folder = shortened(make(name, given.data, given.out / "sets"), given.rows)
                run = given.out / f"{name}-{given.variant}-{given.rows}-{seed}-{given.split}"
                found = what | trained(folder, run, given.split, given.settings, seed)
                with results.open("a") as file:
                    file.write(json.dumps(found) + "\n")
            print(line_of(name, found), flush=True)


if __name__ == "__main__":
    main()
