"""Fine-tuning beside transformers' own: the same start, data, passes over it and sentences a step.

    python bench/finetune.py sst2 --model FOLDER --data DATA [--seeds 1 2 3] [--append bench/RESULTS.md]
    python bench/finetune.py sst2 --model FOLDER --data DATA --speed

regard trains by the recipe that is in recipes/. transformers trains with its Trainer and its own model for
such a task, each batch padded to its longest, as many sentences a step as regard's batches have on average,
its learning rate the one of --peer-lr that does best on the validation data with the first seed. Both keep
the checkpoint that is best on the validation data; the test data are scored once, with regard's metric. What
is finished is kept in --runs and not repeated. There the Trainer is given bfloat16 and batches of similar
length, as regard has them. With --speed only steps are counted, in interleaved rounds, and the Trainer works
as it does by default.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH)]

from train_speed import OURS, PEERS, ask, install_peers, machine  # noqa: E402

import regard  # noqa: E402
from regard.files.read import Row  # noqa: E402
from regard.metrics.relation import RelationScores  # noqa: E402
from regard.metrics.spans import span_counts, span_scores  # noqa: E402
from regard.runs.corpus import Corpus  # noqa: E402
from regard.text.entity_marks import MARKS  # noqa: E402

STEPS = 60
"""By the clock, of which the first few do not count."""


def labels_right(predicted: Sequence[str], gold: Sequence[str]) -> float:
    return fmean(one == two for one, two in zip(predicted, gold, strict=True))


def words_right(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> float:
    return labels_right(list(chain(*predicted)), list(chain(*gold)))


def spans_right(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> float:
    sums_13 = span_counts(predicted, gold).sum(0, keepdims=True)
    return float(span_scores(sums_13)["f1"][0])


def relations_right(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """SemEval's official score."""
    return (
        float(RelationScores.of(predicted, gold, "Other").weighed(np.ones((1, len(gold))))["macro_f1"][0])
        / 100
    )


@dataclass(frozen=True)
class Set:
    recipe: str
    folder: str
    metric: str
    score: Callable[[Any, Any], float]


SETS = {
    "sst2": Set("sst2_minilm", "sst2", "accuracy", labels_right),
    "ewt": Set("ewt_pos_minilm", "ud_english_ewt", "accuracy", words_right),
    "wnut17": Set("wnut17_minilm", "wnut17", "f1", spans_right),
    "semeval": Set("semeval_minilm", "semeval2010_task8", "macro_f1", relations_right),
}


def settled(options: argparse.Namespace, seed: int) -> regard.Recipe:
    chosen = SETS[options.set]
    recipe = regard.Recipe.read(BENCH.parent / "recipes" / f"{chosen.recipe}.toml")
    given = recipe.model_dump(mode="json", exclude_unset=True)
    for split in ("train", "valid", "test"):
        if split in given["data"]:
            given["data"][split] = [
                str(options.data / chosen.folder / Path(file).name) for file in given["data"][split]
            ]
    given["model"]["init_from"] = str(options.model)
    run = options.runs / f"{options.set}-regard-{seed}"
    return regard.Recipe.parse(given | {"seed": seed, "run": str(run)})


def plain(row: Row) -> dict[str, Any]:
    """As the peer is told it."""
    if "tags" in row.cells:
        return {"words": row.cells["text"].split(" "), "tags": row.cells["tags"].split(" ")}
    return row.cells


def rows_of(recipe: regard.Recipe) -> dict[str, list[dict[str, Any]]]:
    corpus, held = Corpus(recipe, Path()), []
    train = list(corpus.learnt(held))
    valid = held if recipe.data.valid is None else list(corpus.rows("valid"))
    return {
        split: [plain(row) for row in rows]
        for split, rows in {"train": train, "valid": valid, "test": list(corpus.rows("test"))}.items()
    }


def once(path: Path, do: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    if not path.exists():
        found = do()
        path.write_text(json.dumps(found), "utf-8")
    told: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return told


def regards(options: argparse.Namespace, seed: int, *more: str) -> dict[str, Any]:
    told = options.runs / f"{options.set}-regard-{seed}.recipe.json"
    told.write_text(settled(options, seed).model_dump_json(exclude_unset=True), "utf-8")
    return ask([OURS, "regard_finetune.py", str(told), *more], options.threads)


def theirs(options: argparse.Namespace, seed: int, batch: int, lr: float, steps: int = 0) -> dict[str, Any]:
    recipe = settled(options, seed)
    rows = rows_of(recipe)
    names = {name for split in rows.values() for row in split for name in row.get("tags", [row.get("label")])}
    told = {
        "kind": recipe.task.kind,
        "model": str(options.model),
        "names": sorted(names),
        "marks": MARKS if recipe.task.kind == "relation" else [],
        "rows": rows,
        "seed": seed,
        "batch": batch,
        "epochs": recipe.train.max_epochs,
        "steps": steps,
        "lr": lr,
        "warmup": recipe.train.warmup,
        "weight_decay": recipe.train.weight_decay,
        "max_length": recipe.task.max_length,
    }
    path = options.runs / f"{options.set}-transformers-{seed}.told.json"
    path.write_text(json.dumps(told), "utf-8")
    return ask([str(PEERS), "hf_finetune.py", str(path)], options.threads)


def score(options: argparse.Namespace, answers: list[Any]) -> float:
    """On the test data, in percent. What is beyond the peer's room is no span, or wrong."""
    rows = rows_of(settled(options, options.seeds[0]))["test"]
    gold = [row["tags"] if "tags" in row else row["label"] for row in rows]
    if "tags" in rows[0]:
        answers = [said + ["O"] * (len(own) - len(said)) for said, own in zip(answers, gold, strict=True)]
    return 100 * SETS[options.set].score(answers, gold)


def compare(options: argparse.Namespace) -> str:
    """Each seed with both; the peer's learning rate is chosen with the first."""
    chosen = SETS[options.set]
    ours = {
        seed: once(options.runs / f"{options.set}-regard-{seed}.json", partial(regards, options, seed))
        for seed in options.seeds
    }
    first = options.seeds[0]
    batch = per_step(options, ours[first])

    def peer(seed: int, lr: float) -> dict[str, Any]:
        path = options.runs / f"{options.set}-transformers-{seed}-{lr:g}.json"
        return once(path, partial(theirs, options, seed, batch, lr))

    valid = {lr: peer(first, lr)["valid"] for lr in options.peer_lr}
    best = max(valid, key=lambda lr: valid[lr])
    peers = {seed: peer(seed, best) for seed in options.seeds}
    scores = {
        "regard": [found["scores"]["test"][chosen.metric] for found in ours.values()],
        "transformers": [score(options, found["answers"]) for found in peers.values()],
    }
    minutes = {"regard": ours, "transformers": peers}
    rows = [
        f"| {options.set} | {chosen.metric} on test, each seed | mean | minutes of training |",
        "|---|---|---|---|",
    ]
    for tool, own in scores.items():
        spread = f" ± {stdev(own):.2f}" if len(own) > 1 else ""
        spent = fmean(found["minutes"] for found in minutes[tool].values())
        rows.append(
            f"| {tool} | {', '.join(f'{one:.2f}' for one in own)} | {fmean(own):.2f}{spread} | {spent:.1f} |"
        )
    tried = ", ".join(f"{lr:g} ({share:.4f})" for lr, share in valid.items())
    return (
        "\n".join(rows)
        + f"\n\ntransformers: {batch} sentences a step; learning rates tried on validation data: {tried}.\n"
    )


def per_step(options: argparse.Namespace, ours: dict[str, Any]) -> int:
    """As many sentences as regard's steps have on average."""
    n_train = len(rows_of(settled(options, options.seeds[0]))["train"])
    return round(n_train * ours["epochs"] / ours["steps"])


def race(options: argparse.Namespace) -> str:
    """Sentences a second of both, in interleaved rounds."""
    seed, found = options.seeds[0], {"regard": [], "transformers": []}
    for number in range(options.rounds):
        ours = regards(options, seed, "--steps", str(STEPS))
        batch = round(ours["examples_per_step"])
        found["regard"].append(ours["examples_per_s"])
        found["transformers"].append(
            theirs(options, seed, batch, options.peer_lr[0], STEPS)["examples_per_s"]
        )
        print(
            f"round {number + 1}: {found['regard'][-1]:.1f} and {found['transformers'][-1]:.1f} sentences/s",
            flush=True,
        )
    middle = {tool: median(own) for tool, own in found.items()}
    rows = ["| tool | sentences/s, each round | median | regard is |", "|---|---|---|---|"]
    for tool, own in found.items():
        times = "" if tool == "regard" else f"{middle['regard'] / middle[tool]:.2f}×"
        rows.append(f"| {tool} | {', '.join(f'{one:.1f}' for one in own)} | {middle[tool]:.1f} | {times} |")
    return "\n".join(rows) + f"\n\n{STEPS} steps of {batch} sentences on average each.\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--model", type=Path, required=True, help="folder of the BERT both begin with")
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the sets by their names")
    parser.add_argument("--runs", type=Path, default=Path("runs/finetune"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--peer-lr", type=float, nargs="+", default=[5e-5, 1e-4, 2e-4])
    parser.add_argument("--speed", action="store_true", help="only count sentences a second")
    parser.add_argument("--rounds", type=int, default=3, help="of --speed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--append", type=Path, help="Markdown file to add a dated section to")
    options = parser.parse_args()
    install_peers()
    options.runs.mkdir(parents=True, exist_ok=True)
    told = (race if options.speed else compare)(options)
    print(f"\n{told}")
    if options.append:
        command = shlex.join(["python", "bench/finetune.py", *sys.argv[1:]])
        places = {options.model: "FOLDER", options.data: "DATA", options.runs: "RUNS"}
        for path, name in (places | {options.append: "bench/RESULTS.md"}).items():
            command = command.replace(str(path), name)
        heading = f"\n## Fine-tuning beside transformers, {options.set}, {date.today()}\n\n`{command}`\n\n"
        with options.append.open("a", encoding="utf-8") as file:
            file.write(f"{heading}Machine: {machine()}; threads: {options.threads}.\n\n{told}")


if __name__ == "__main__":
    main()
