"""How fast the work tree is beside a revision: both in turn, many times, and the ratio of each pair.

    python bench/same_speed.py REV [--pairs 9] [--append bench/RESULTS.md]

Training, decoding, serving and starting, each in a process of its own that imports the one tree or the other;
which of the two comes first alternates, so that what a machine does in the course of time falls on both. The
number that counts is the median of the ratios new/old of the rates, with the interval in which 95 % of such
medians lie (bootstrap): its lower end should be 0.95 or more. For a quiet machine; it takes a minute for each
side of each pair.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH), str(BENCH / "workers")]

import same_cases  # noqa: E402
from same_as import TREE, WORKERS, checked_out, environment, git  # noqa: E402
from same_cases import Recipe  # noqa: E402
from train_speed import machine  # noqa: E402

ENOUGH = 0.95
N_DRAWS = 10_000
UNITS = {
    "train a translator": "tokens/s",
    "train a classifier": "texts/s",
    "decode greedily": "sentences/s",
    "decode with beam 4": "sentences/s",
    "serve": "requests/s",
    "start: --help": "starts/s",
    "start: predict": "starts/s",
}
NEVER = 10**6
WORD = {"kind": "word", "vocab_size": 4000, "min_frequency": 1}
TRAIN: Recipe = {
    "max_steps": NEVER,
    "eval_every": NEVER,
    "batch_tokens": 2048,
    "log_every": 1,
    "save_minutes": 60.0,
    "precision": "single",
    "device": "cpu",
}


def recipes(side: str, threads: int) -> dict[str, Recipe]:
    """What a side trains: two models against the clock, and one that is then asked."""
    made: dict[str, Recipe] = {}
    for name, kind, data, roles, model in (
        (
            "translator",
            "translate",
            "pairs",
            ("source", "target"),
            {
                "kind": "transformer",
                "d_model": 128,
                "n_heads": 4,
                "d_ff": 256,
                "n_encoder_layers": 2,
                "n_decoder_layers": 2,
            },
        ),
        (
            "classifier",
            "classify",
            "labelled",
            ("text", "label"),
            {
                "kind": "classifier",
                "encoder": {"kind": "transformer", "d_model": 128, "n_heads": 4, "d_ff": 256, "n_layers": 2},
            },
        ),
    ):
        files = {split: f"{data}.{split}.tsv" for split in ("train", "valid")}
        made[name] = {
            "run": name,
            "task": {"kind": kind, "max_length": 60, "tokenizer": WORD},
            "data": files | {"columns": {role: column for column, role in enumerate(roles, 1)}},
            "model": model,
            "train": TRAIN | {"threads": threads},
        }
    steps = {"max_steps": 120, "warmup": 60}
    made["asked"] = made["translator"] | {"run": "asked", "train": made["translator"]["train"] | steps}
    return {name: same_cases.told(side, recipe) for name, recipe in made.items()}


class Side:
    """One tree, with a folder for its runs."""

    def __init__(self, name: str, tree: Path, folder: Path, threads: int, seconds: float) -> None:
        self.name, self.tree, self.folder, self.threads, self.seconds = name, tree, folder, threads, seconds
        folder.mkdir()
        self.recipes = folder / "recipes.json"
        self.recipes.write_text(json.dumps(recipes(name, threads)), "utf-8")

    def measure(self, what: str) -> float:
        command = [sys.executable, str(WORKERS / "same_speed.py"), what, "--side", self.name]
        command += ["--tree", str(self.tree), "--folder", str(self.folder), "--recipes", str(self.recipes)]
        command += ["--seconds", str(self.seconds)]
        done = subprocess.run(
            command,
            env=environment(self.tree, self.threads),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{what}, {self.name}: failed\n{done.stderr[-3000:]}")
        return float(json.loads(done.stdout.splitlines()[-1])["rate"])


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Where 95 % of the medians lie of as many ratios drawn from these."""
    rng = random.Random(0)
    medians = sorted(median(rng.choices(ratios, k=len(ratios))) for _ in range(N_DRAWS))
    return medians[round(0.025 * N_DRAWS)], medians[round(0.975 * N_DRAWS) - 1]


def table(rates: dict[str, dict[str, list[float]]]) -> tuple[str, bool]:
    """Markdown, a row for each measure; and whether all are fast enough."""
    lines = [
        f"| | old | new | new/old, median [95 %] | ≥ {ENOUGH} |",
        "|---|---|---|---|---|",
    ]
    all_enough = True
    for what, own in rates.items():
        ratios = [new / old for old, new in zip(own["old"], own["new"], strict=True)]
        low, high = interval(ratios)
        enough = low >= ENOUGH
        all_enough &= enough
        cells = [f"{median(own[side]):.4g} {UNITS[what]}" for side in ("old", "new")]
        told = f"{median(ratios):.3f} [{low:.3f}, {high:.3f}]"
        lines.append(f"| {what} | {' | '.join(cells)} | {told} | {'yes' if enough else 'no'} |")
    return "\n".join(lines), all_enough


def section(options: argparse.Namespace, revision: str, rows: str) -> str:
    new = git("describe", "--always", "--dirty", "--abbrev=12")
    packages: dict[str, Any] = {name: version(name) for name in ("torch", "numpy", "tokenizers")}
    facts = [
        f"Machine: {machine()}; threads: {options.threads}; old: {revision[:12]}, new: {new}.",
        "Versions: " + ", ".join(f"{name} {number}" for name, number in packages.items()) + ".",
        f"{options.pairs} pairs in turn, {options.seconds:g} s for each training, half of it for decoding "
        "and serving.",
    ]
    command = (
        f"python bench/same_speed.py {options.rev} --pairs {options.pairs} --seconds {options.seconds:g}"
    )
    return (
        f"\n## Speed beside {revision[:12]}, {date.today()}\n\n`{command}`\n\n"
        + "\n".join(facts)
        + f"\n\n{rows}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rev", help="the revision to compare with")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each training; decoding takes half")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=UNITS, default=list(UNITS))
    parser.add_argument("--append", type=Path, help="Markdown file to add a dated section to")
    options = parser.parse_args()

    revision, tree = checked_out(options.rev)
    rates: dict[str, dict[str, list[float]]] = {what: {"old": [], "new": []} for what in options.only}
    with tempfile.TemporaryDirectory() as folder:
        sides = [
            Side(name, own, Path(folder) / name, options.threads, options.seconds)
            for name, own in (("old", tree), ("new", TREE))
        ]
        for side in sides:
            side.measure("prepare")
        for pair in range(options.pairs):
            for what in options.only:
                for side in sides if pair % 2 == 0 else reversed(sides):
                    rates[what][side.name].append(side.measure(what))
                old, new = (rates[what][side.name][-1] for side in sides)
                told = f"{old:9.4g} → {new:9.4g} {UNITS[what]}, ratio {new / old:.3f}"
                print(f"pair {pair + 1}  {what:20} {told}", flush=True)
    rows, enough = table(rates)
    print(f"\n{rows}")
    if options.append:
        with options.append.open("a", encoding="utf-8") as file:
            file.write(section(options, revision, rows))
    sys.exit(0 if enough else 1)


if __name__ == "__main__":
    main()
