"""What pretraining is worth: a classifier of 1,000 labels that begins with a pretrained run, beside the same
model begun at random, on the same labels with the same seeds.

    python bench/pretrain_gain.py runs/pretrain-english DATA/mr_sentence_polarity [--append bench/RESULTS.md]

For each seed other labels are drawn and both models trained; the checkpoint is picked on the validation
split, the test split is scored once. A training that is there already is not repeated, so the script goes on
where it was stopped. Both have the pretrained run's sizes and vocabulary; each has the learning rate of --lr
that does best on the validation split, on average of the first seeds (--tune). The paired test takes seeds as
pairs.
"""

import argparse
import gzip
import json
import math
import random
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import fmean, stdev

import torch

import regard
from regard.interop.encoder import PREFIX, read_encoder
from regard.tasks.classify import Classify

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH)]

from train_speed import machine  # noqa: E402

WAYS = ("pretrained", "scratch")
Found = dict[str, list[dict[str, float]]]
"""Scores of each way, seed by seed."""


def labelled(source: Path, folder: Path, n_labels: int, seed: int) -> Path:
    """So many training rows, as many of each label, drawn by the seed."""
    path = folder / f"train-{n_labels}-{seed}.tsv"
    with gzip.open(source / "train.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line for line in file if line.strip()]
    by_label: dict[str, list[str]] = {}
    for row in rows:
        by_label.setdefault(row.split("\t")[0], []).append(row)
    rng = random.Random(seed)
    drawn = [row for own in by_label.values() for row in rng.sample(own, n_labels // len(by_label))]
    rng.shuffle(drawn)
    path.write_text("".join(drawn), "utf-8")
    return path


def recipe(options: argparse.Namespace, way: str, seed: int, lr: float) -> regard.Recipe:
    begun = way == "pretrained"
    return regard.Recipe.parse(
        {
            "run": str(options.runs / f"{way}-{seed}-{lr:g}"),
            "seed": seed,
            "task": {"kind": "classify", "max_length": options.max_length},
            "data": {
                "train": str(labelled(options.data, options.runs, options.labels, seed)),
                "valid": str(options.data / "dev.tsv.gz"),
                "test": str(options.data / "test.tsv.gz"),
                "columns": {"label": 1, "text": 2},
            },
            "model": {
                "kind": "classifier",
                "init_from": str(options.run if begun else random_encoder(options, seed)),
                "pooling": options.pooling,
                "dropout": 0.1,
            },
            "train": {
                "max_epochs": options.epochs,
                "batch_tokens": 1024,
                "optimizer": "adamw",
                "lr": lr,
                "weight_decay": 0.01,
                "schedule": "linear",
                "warmup": 30,
                "threads": options.threads,
                "device": "cpu",
            },
        }
    )


def random_encoder(options: argparse.Namespace, seed: int) -> Path:
    """The same encoder with the same vocabulary, as it would be before any training."""
    folder: Path = options.runs / f"random-{seed}"
    if folder.exists():
        return folder
    found = read_encoder(options.run)
    torch.manual_seed(seed)
    fresh = found.config.build({"vocab": len(found.tokenizer)}).state_dict()
    replace(found, tensors={f"{PREFIX}{name}": tensor for name, tensor in fresh.items()}).save(folder)
    return folder


def accuracy(options: argparse.Namespace, way: str, seed: int, lr: float) -> dict[str, float]:
    """Of a finished run, or of one that is trained now."""
    trained = regard.train(recipe(options, way, seed, lr), quiet=True)
    assert isinstance(trained.task, Classify)
    found = {split: scores["accuracy"] for split, scores in trained.metrics["scores"].items()}
    print(json.dumps({"begins": way, "seed": seed, "lr": lr, "valid": found["valid"]}), flush=True)
    return found


def chosen(options: argparse.Namespace, way: str) -> float:
    """The learning rate that does best on the validation split."""

    def mean(lr: float) -> float:
        return fmean(accuracy(options, way, seed, lr)["valid"] for seed in range(1, options.tune + 1))

    return float(max(options.lr, key=mean))


def paired(differences: Sequence[float]) -> tuple[float, float]:
    """Student's t of paired differences, and the chance of one as far from 0 (two-sided)."""
    n = len(differences)
    spread = stdev(differences)
    if spread == 0:
        return math.inf, 0.0
    t = fmean(differences) / (spread / math.sqrt(n))
    return t, _two_sided(abs(t), n - 1)


def _two_sided(t: float, freedom: int, steps: int = 200_000) -> float:
    """By summing the density of Student's distribution between −t and t (Simpson)."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    width = t / steps

    def density(x: float) -> float:
        return scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2)

    inner = sum((4 if n % 2 else 2) * density(n * width) for n in range(1, steps))
    return max(0.0, 1 - 2 * (density(0) + inner + density(t)) * width / 3)


def section(options: argparse.Namespace, found: Found, rates: dict[str, float]) -> str:
    rows = ["| begins | test accuracy, each seed | mean | validation |", "|---|---|---|---|"]
    for way in WAYS:
        each = ", ".join(f"{told['test']:.1f}" for told in found[way])
        means = {split: fmean(told[split] for told in found[way]) for split in ("test", "valid")}
        rows.append(f"| {way} | {each} | {means['test']:.2f} | {means['valid']:.2f} |")
    pairs = zip(*(found[way] for way in WAYS), strict=True)
    differences = [one["test"] - other["test"] for one, other in pairs]
    t, p = paired(differences)
    return (
        f"\n## What pretraining is worth, {date.today()}\n\n"
        f"`{shlex.join(['python', 'bench/pretrain_gain.py', *sys.argv[1:]])}`\n\n"
        f"Machine: {machine()}; threads: {options.threads}. {options.labels} labels, "
        f"{len(differences)} seeds, {options.epochs} epochs; learning rates "
        + ", ".join(f"{lr:g} ({way})" for way, lr in rates.items())
        + f", of {', '.join(f'{lr:g}' for lr in options.lr)}.\n\n"
        + "\n".join(rows)
        + f"\n\nDifference {fmean(differences):+.2f} on average; paired t-test: t = {t:.2f}, p = {p:.2g}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="a finished run of pretrain")
    parser.add_argument("data", type=Path, help="a folder with train, dev and test.tsv.gz: label, tab, text")
    parser.add_argument("--runs", type=Path, default=Path("runs/pretrain-gain"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, nargs="+", default=[1e-4, 3e-4, 1e-3])
    parser.add_argument("--tune", type=int, default=2, help="seeds that a learning rate is chosen with")
    parser.add_argument("--max-length", type=int, default=62)
    parser.add_argument("--pooling", default="mean")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--append", type=Path, help="add the table to this file")
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    rates = {way: chosen(options, way) for way in WAYS}
    found = {
        way: [accuracy(options, way, seed, rates[way]) for seed in range(1, options.seeds + 1)]
        for way in WAYS
    }
    told = section(options, found, rates)
    print(told)
    if options.append is not None:
        with options.append.open("a", encoding="utf-8") as file:
            file.write(told)


if __name__ == "__main__":
    main()
