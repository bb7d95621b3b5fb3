"""Five labelled sets of the UCR and UEA archives: a patch Transformer beside MiniRocket, mean of five seeds.

    python bench/series_sets.py DATA OUT [--sets GunPoint …] [--seeds 5] [--peer PYTHON_WITH_AEON]

DATA holds NAME_TRAIN.ts.gz and NAME_TEST.ts.gz. With 36 to 270 series nothing is held out: convolutions and
patches were chosen by cross-validation in a prototype (docs/LOG.md), the number of steps is fixed, and the
last weights are scored. Runs that are there already are not repeated.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

ALIKE = {
    "task.kind": "classify",
    "fields.series.kind": "series",
    "model.kind": "classifier",
    "model.pooling": "attention",
    "model.dropout": 0.2,
    "model.encoder.kind": "patchtst",
    "model.encoder.d_model": 32,
    "model.encoder.d_ff": 64,
    "model.encoder.n_layers": 2,
    "model.encoder.dropout": 0.1,
    "model.encoder.norm": "pre",
    "train.optimizer": "adamw",
    "train.weight_decay": 0.01,
    "train.lr": 2e-3,
    "train.warmup": 30,
    "train.schedule": "cosine",
    "train.ema": 0.95,
    "train.max_steps": 700,
    "train.eval_every": 700,
    "train.threads": 1,
    "train.baselines": False,
}
WINDOWS_TOGETHER = 16
SETS: dict[str, dict[str, Any]] = {
    "GunPoint": {"steps": 150, "patch": 8, "stride": 4, "stem": [7, 5]},
    "ArrowHead": {"steps": 251, "patch": 8, "stride": 4, "stem": [7, 5]},
    "ItalyPowerDemand": {"steps": 24, "patch": 4, "stride": 2, "stem": [5, 3]},
    "BasicMotions": {"steps": 100, "patch": 8, "stride": 4, "stem": [7, 5]},
    "JapaneseVowels": {"steps": 26, "patch": 4, "stride": 2, "stem": [5, 3]},
}


def recipe(name: str, data: Path, run: Path, seed: int) -> dict[str, Any]:
    own = SETS[name]
    flat = ALIKE | {
        "run": str(run),
        "seed": seed,
        "data.train": str(data / f"{name}_TRAIN.ts.gz"),
        "data.valid": str(data / f"{name}_TRAIN.ts.gz"),
        "data.test": str(data / f"{name}_TEST.ts.gz"),
        "model.encoder.patch": own["patch"],
        "model.encoder.stride": own["stride"],
        "model.encoder.stem": own["stem"],
        "train.batch_tokens": WINDOWS_TOGETHER * own["steps"],
    }
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        table = nested
        *outer, last = key.split(".")
        for part in outer:
            table = table.setdefault(part, {})
        table[last] = value
    return nested


def trained(name: str, data: Path, out: Path, seed: int) -> tuple[float, float]:
    """Accuracy on the test part, and minutes."""
    from regard.recipe import Recipe

    run = out / f"{name}-{seed}"
    path = run / "model" / "metrics.json"
    if not path.exists():
        given = recipe(name, data, run, seed)
        Recipe.parse(given)
        out.mkdir(parents=True, exist_ok=True)
        written = out / f"{name}-{seed}.toml"
        written.write_text("".join(_tables(given)), "utf-8")
        subprocess.run([sys.executable, "-m", "regard", "train", str(written)], check=True)
    metrics = json.loads(path.read_text("utf-8"))
    return metrics["scores"]["test"]["accuracy"] / 100, metrics["minutes"]


def _tables(nested: dict[str, Any], name: str = "") -> list[str]:
    lines = [f"[{name}]\n"] if name else []
    lines += [
        f"{key} = {json.dumps(value)}\n" for key, value in nested.items() if not isinstance(value, dict)
    ]
    for key, value in nested.items():
        if isinstance(value, dict):
            lines += _tables(value, f"{name}.{key}" if name else key)
    return lines


def minirocket(python: str, name: str, data: Path, n_seeds: int) -> dict[str, Any]:
    worker = Path(__file__).parent / "workers" / "minirocket.py"
    with tempfile.TemporaryDirectory() as folder:
        plain = []
        for split in ("TRAIN", "TEST"):
            path = Path(folder) / f"{name}_{split}.ts"
            path.write_bytes(gzip.decompress((data / f"{name}_{split}.ts.gz").read_bytes()))
            plain.append(str(path))
        output = subprocess.run([python, str(worker), *plain, str(n_seeds)], check=True, capture_output=True)
    found: dict[str, Any] = json.loads(output.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="+", default=[*SETS], choices=[*SETS])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer", help="an interpreter with aeon, for MiniRocket")
    given = parser.parse_args()
    print("| set | regard, mean (least–most) | minutes | MiniRocket | seconds |\n|---|---|---|---|---|")
    for name in given.sets:
        runs = [trained(name, given.data, given.out, seed) for seed in range(1, given.seeds + 1)]
        scores, minutes = [score for score, _ in runs], fmean(spent for _, spent in runs)
        ours = f"{fmean(scores):.3f} ({min(scores):.3f}–{max(scores):.3f}) | {minutes:.1f}"
        peer = minirocket(given.peer, name, given.data, given.seeds) if given.peer else None
        theirs = "– | –" if peer is None else f"{fmean(peer['accuracy']):.3f} | {peer['seconds']:.1f}"
        print(f"| {name} | {ours} | {theirs} |", flush=True)


if __name__ == "__main__":
    main()
