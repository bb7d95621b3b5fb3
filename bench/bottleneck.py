"""The texts' central claim as an experiment: does a fixed context vector lose what attention keeps?

Trains the same data with an RNN without attention, with dot, with additive attention, and a Transformer;
scores BLEU on the test set, whole and in four buckets of source length; draws
docs/experiments/bottleneck.svg.

    python bench/bottleneck.py            # in a folder that holds `multi30k` (the lc_tok files)

A run that is finished is scored, not trained again; an unfinished one goes on.
"""

import argparse
import gzip
import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from sacrebleu import corpus_bleu

import regard

HERE = Path(__file__).resolve().parents[1]
RNN, TINY = HERE / "recipes/multi30k_rnn.toml", HERE / "recipes/multi30k_tiny.toml"
MODELS = {
    "rnn, no attention": (RNN, "runs/multi30k-rnn-none", ["model.attention=none"]),
    "rnn, dot": (RNN, "runs/multi30k-rnn-dot", ["model.attention=dot", "model.order=luong"]),
    "rnn, additive": (RNN, "runs/multi30k-rnn", []),
    "transformer": (TINY, "runs/multi30k-tiny", []),
}
BUCKETS = ((1, 9), (10, 12), (13, 16), (17, 1000))


def trained(recipe: Path, run: str, overrides: list[str]) -> regard.Trained:
    if Path(run, "model").is_dir():
        return regard.load(run)
    return regard.train(recipe, f"run={run}", *overrides)


def lines(path: str) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.strip() for line in file]


def bleu(hypotheses: list[str], references: list[str]) -> float:
    return float(corpus_bleu(hypotheses, [references], tokenize="none", force=True).score)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--test", default="multi30k/test_2016_flickr", help="path without the language suffix"
    )
    parser.add_argument("--svg", type=Path, default=HERE / "docs/experiments/bottleneck.svg")
    options = parser.parse_args()
    sources, references = lines(f"{options.test}.en.gz"), lines(f"{options.test}.de.gz")
    lengths = [len(source.split()) for source in sources]
    results = {}
    for name, (recipe, run, overrides) in MODELS.items():
        model = trained(recipe, run, overrides)
        hypotheses = [found.text for found in model.predict(sources)]
        row = {"all": bleu(hypotheses, references)}
        for low, high in BUCKETS:
            inside = [i for i, length in enumerate(lengths) if low <= length <= high]
            row[f"{low}–{high}" if high < 1000 else f"{low}+"] = bleu(
                [hypotheses[i] for i in inside], [references[i] for i in inside]
            )
        results[name] = row | {"minutes": model.metrics["minutes"]}
        print(json.dumps({name: results[name]}, ensure_ascii=False), flush=True)
    counts = [sum(low <= length <= high for length in lengths) for low, high in BUCKETS]
    print("| model | " + " | ".join(results["transformer"]) + " |")
    for name, row in results.items():
        print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in row.values()) + " |")
    draw(results, counts, options.svg)


def draw(results: dict[str, dict[str, float]], counts: list[int], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for (name, row), marker in zip(results.items(), "os^D", strict=True):
        buckets = [key for key in row if key not in ("all", "minutes")]
        axes.plot(buckets, [row[key] for key in buckets], marker=marker, label=f"{name} ({row['all']:.1f})")
    axes.set_xticks(range(len(buckets)), [f"{key}\nn = {n}" for key, n in zip(buckets, counts, strict=True)])
    axes.set_xlabel("source length, words")
    axes.set_ylabel("BLEU")
    axes.set_title("Multi30k en→de, test 2016: BLEU by source length (whole set in brackets)")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
