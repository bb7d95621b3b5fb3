"""What grows with the data: encoding, memory, the first step, resuming. From 10⁴ to 10⁷ sentence pairs.

    python bench/growth.py --data DIR [--most 10000000] [--append bench/RESULTS.md]

DIR holds Multi30k's `train.en.gz` and `train.de.gz`. Larger sets are made of its pairs, drawn at random: one
in each line, two in every third. Every size is trained by two fresh processes: the first encodes, the second
finds everything encoded, goes to a random place of the tenth epoch and takes its first steps from there.
"""

import argparse
import gzip
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

STEPS = 20
RECIPE = """
run = "{run}"
[task]
kind = "translate"
joint = true
tokenizer = {{ kind = "bpe", vocab_size = 8000 }}
[data]
train = ["{source}", "{target}"]
valid = ["{valid_source}", "{valid_target}"]
[model]
kind = "transformer"
preset = "tiny"
[train]
max_steps = {steps}
eval_every = 1000000
batch_tokens = 4096
"""


def make(folder: Path, pairs: list[tuple[str, str]], n: int) -> None:
    rng = random.Random(n)
    with (folder / "train.en").open("w") as source, (folder / "train.de").open("w") as target:
        for number in range(n):
            chosen = rng.choices(pairs, k=2 if number % 3 == 0 else 1)
            source.write(" ".join(pair[0] for pair in chosen) + "\n")
            target.write(" ".join(pair[1] for pair in chosen) + "\n")
    for side, name in enumerate(("valid.en", "valid.de")):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in pairs[:100]))


def measure(folder: Path, jump: bool) -> dict[str, Any]:
    """In this process: prepare and take the first steps; after a jump, from a random place."""
    began = time.perf_counter()
    import regard
    from regard.data.batching import Place
    from regard.runs.prepare import prepare
    from regard.training.events import Encoding, Step

    imported = time.perf_counter()
    encoded: list[Encoding] = []
    found: dict[str, Any] = {"import_s": imported - began}
    with prepare(
        regard.Recipe.read(folder / "recipe.toml"),
        tell=lambda event: encoded.append(event) if isinstance(event, Encoding) else None,
    ) as run:
        found["prepare_s"] = time.perf_counter() - imported
        if encoded:
            found["lines_a_second"] = 2 * encoded[-1].rows / encoded[-1].seconds
        training = run.training
        if jump:
            window = random.Random(1).randrange(training.order.n_windows)
            asked = time.perf_counter()
            training.advance(place=Place(9, window, 3))
            training.loader(training.progress.place)
            found["jump_s"] = time.perf_counter() - asked
        for event in run.events():
            if isinstance(event, Step):
                found.setdefault("first_step_s", time.perf_counter() - imported)
                if event.step == STEPS // 2:
                    break
    found["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found["own_gb"] = _own_kilobytes() / 2**20
    return found


def _own_kilobytes() -> int:
    """At this moment, without pages of files that are mapped: those the system takes back at need."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--most", type=int, default=10**7)
    parser.add_argument("--append", type=Path)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--jump", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.jump)))
        return
    texts = []
    for language in ("en", "de"):
        with gzip.open(options.data / f"train.{language}.gz", "rt", encoding="utf-8") as lines:
            texts.append([line.strip() for line in lines])
    pairs = list(zip(*texts, strict=True))
    rows = [
        "| pairs | encoding, lines/s | first start | peak memory "
        "| started again: first step | jump into epoch 10 | peak memory | without mapped files |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for n in (size for size in (10**4, 10**5, 10**6, 10**7) if size <= options.most):
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
            folder = Path(name)
            make(folder, pairs, n)
            sides = ("train.en", "train.de", "valid.en", "valid.de")
            files = dict(zip(("source", "target", "valid_source", "valid_target"), sides, strict=True))
            paths = {role: folder / file for role, file in files.items()}
            recipe = RECIPE.format(run=folder / "runs" / "run", steps=STEPS, **paths)
            (folder / "recipe.toml").write_text(recipe)
            cold, warm = (_worker(folder, *jump) for jump in ((), ("--jump",)))
        rows.append(
            f"| {n:,} | {cold['lines_a_second']:,.0f} | {cold['prepare_s']:.1f} s | {cold['peak_gb']:.2f} GB "
            f"| {warm['first_step_s']:.1f} s | {warm['jump_s']:.2f} s | {warm['peak_gb']:.2f} GB "
            f"| {warm['own_gb']:.2f} GB |"
        )
        print(rows[-1], flush=True)
    if options.append:
        with options.append.open("a", encoding="utf-8") as results:
            results.write(f"\n## Growth, {date.today()}\n\n" + "\n".join(rows) + "\n")


def _worker(folder: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", str(folder), *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(list(islice(done.stdout.splitlines(), 1000))[-1])
    return answer


if __name__ == "__main__":
    main()
