"""How recommendation grows: interactions → memory and seconds to the first step; histories/s of exact top-k.

    python bench/recommend_scale.py interactions 100000 1000000 10000000
    python bench/recommend_scale.py top --items 20000

Interactions are synthetic: a CSV in no order, of users and items as unequally frequent as in life. Each
number of them is read, grouped and trained on for one step in a process of its own.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.fields.items import Items
from regard.layers.retrieval import top_items
from regard.models import SASRecConfig
from regard.recipe import Recipe
from regard.runs.prepare import prepare
from regard.tasks import Recommend, RecommendConfig
from regard.tasks.recommended import states
from regard.training.events import Step

PER_USER, USERS_PER_ITEM = 20, 5
"""Mean length of a history, and how many more users than items there are."""
BLOCK = 1 << 20
RECIPE = """
run = "{folder}/run"
[task]
kind = "recommend"
loss = {{ kind = "sampled_softmax" }}
[data]
train = "{folder}/interactions.csv"
[model]
kind = "sasrec"
[train]
max_steps = 1
batch_tokens = 2048
threads = 1
"""


def write(path: Path, n: int) -> None:
    """A table in random order: users and items by Zipf-like shares, times of two years."""
    rng = np.random.default_rng(1)
    n_users = max(10, n // PER_USER)
    n_items = max(10, n_users // USERS_PER_ITEM)
    with path.open("w") as file:
        file.write("user,item,time\n")
        for first in range(0, n, BLOCK):
            many = min(BLOCK, n - first)
            users = (n_users * rng.random(many) ** 1.5).astype(np.int64)
            items = (n_items * rng.random(many) ** 3).astype(np.int64)
            times = rng.integers(1_600_000_000, 1_663_000_000, many)
            rows = zip(users.tolist(), items.tolist(), times.tolist(), strict=True)
            file.writelines(f"u{user},i{item},{at}\n" for user, item, at in rows)


def first_step(folder: Path) -> None:
    """Reads, encodes and makes one step; prints what it took."""
    began = time.perf_counter()
    with prepare(Recipe.read(folder / "recipe.toml")) as run:
        ready = time.perf_counter()
        next(event for event in run.events() if isinstance(event, Step))
        answer = {
            "items": len(run.training.task.items.names),
            "examples": len(run.training.train),
            "read and encoded, s": round(ready - began, 1),
            "first step after, s": round(time.perf_counter() - began, 1),
            "of these on the processor, s": round(time.process_time(), 1),
            "peak memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
    print(json.dumps(answer), flush=True)


def grown(counts: list[int]) -> None:
    for n in counts:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder / "interactions.csv", n)
            (folder / "recipe.toml").write_text(RECIPE.format(folder=folder))
            size = (folder / "interactions.csv").stat().st_size
            done = subprocess.run(
                [sys.executable, __file__, "first", str(folder)],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            print(
                f"{n:,} interactions, {size / 1e6:,.0f} MB:", done.stdout.strip().splitlines()[-1], flush=True
            )


def top(n_items: int, n_histories: int, length: int, k: int) -> None:
    """Histories/s of the exact list, seen items removed: the answers, and the ranking without them."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    rng = np.random.default_rng(1)
    names = tuple(f"i{n}" for n in range(n_items))
    task = Recommend(RecommendConfig(max_length=length, k=k), Items(names=names, counts=(1,) * n_items))
    model = SASRecConfig().build(task.widths).eval()
    rows = task.asked([[names[n] for n in rng.integers(n_items, size=length)] for _ in range(n_histories)])

    def answered(batch: Any) -> None:
        list(task.predict(model, batch))

    def ranked(batch: Any) -> None:
        with torch.inference_mode():
            top_items(model(batch.inputs, batch.at_N, states), k, batch.seen)

    for what, work in (("ranked", ranked), ("answered", answered)):
        began, cpu = time.perf_counter(), time.process_time()
        pending = iter(rows)
        while part := list(islice(pending, task.max_batch_rows)):
            work(task.collate(task.encode(part)))
        seconds, spent = time.perf_counter() - began, time.process_time() - cpu
        print(
            f"{what}: {n_histories / seconds:,.0f} histories/s with {torch.get_num_threads()} threads, "
            f"{n_histories / spent:,.0f} a second of one processor ({n_items:,} items, {length} in a history)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    grow = verbs.add_parser("interactions")
    grow.add_argument("counts", type=int, nargs="+")
    first = verbs.add_parser("first")
    first.add_argument("folder", type=Path)
    best = verbs.add_parser("top")
    best.add_argument("--items", type=int, default=20_000)
    best.add_argument("--histories", type=int, default=4096)
    best.add_argument("--length", type=int, default=50)
    best.add_argument("--k", type=int, default=10)
    options = parser.parse_args()
    if options.verb == "interactions":
        grown(options.counts)
    elif options.verb == "first":
        first_step(options.folder)
    else:
        top(options.items, options.histories, options.length, options.k)


if __name__ == "__main__":
    main()
