"""Minutes to a greedy BLEU of 36 on Multi30k's val, tiny Transformer: regard beside JoeyNMT.

    python bench/time_to_quality.py --data DIR [--tools regard joeynmt] [--lr 0.003]

DIR holds Multi30k's `train` and `val` files (lc_tok). regard trains recipes/multi30k_fast.toml; JoeyNMT
trains bench/joeynmt_tiny.yaml, the same architecture. Both validate every --every steps; time counts from the
start of the process, with validations and without: JoeyNMT's search is slow, which says nothing about its
training. (Cutting its text into pieces is done for it beforehand and does not count.)
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH))

from corpus import prepare  # noqa: E402
from train_speed import PEERS, WORKERS, install_peers, machine  # noqa: E402

VOCABULARY = 10_000
Validation = dict[str, Any]


def regard(options: argparse.Namespace, folder: Path) -> Iterator[Validation]:
    command = [sys.executable, str(Path(__file__).resolve()), "--alone", str(folder)]
    command += ["--data", str(options.data), "--bleu", str(options.bleu), "--every", str(options.every)]
    yield from _lines(command, options)


def joeynmt(options: argparse.Namespace, folder: Path) -> Iterator[Validation]:
    prepare(options.data, folder / "corpus", VOCABULARY, "val")
    command = [str(PEERS), str(WORKERS / "joeynmt_quality.py"), "--config", str(BENCH / "joeynmt_tiny.yaml")]
    command += ["--corpus", str(folder / "corpus"), "--references", str(options.data / "val.de.gz")]
    command += [
        "--folder",
        str(folder / "model"),
        "--bleu",
        str(options.bleu),
        "--minutes",
        str(options.minutes),
        "--every",
        str(options.every),
    ]
    if options.lr is not None:
        command += ["--lr", str(options.lr)]
    yield from _lines(command, options)


def _lines(command: list[str], options: argparse.Namespace) -> Iterator[Validation]:
    threads = {"OMP_NUM_THREADS": str(options.threads), "MKL_NUM_THREADS": str(options.threads)}
    environment = os.environ | threads | {"PYTHONPATH": os.pathsep.join([str(BENCH), *sys.path])}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if process.returncode:
        raise SystemExit(f"a tool failed with {process.returncode}: see above")


def alone(options: argparse.Namespace) -> None:
    """In a process of its own: train until the score is reached, a line of JSON for every validation."""
    began = time.perf_counter()
    from regard.recipe import Recipe
    from regard.runs.prepare import prepare as prepared
    from regard.training.events import Evaluated

    train, valid = (
        json.dumps([str(options.data / f"{split}.{side}.gz") for side in ("en", "de")])
        for split in ("train", "val")
    )
    recipe = Recipe.read(
        BENCH.parent / "recipes/multi30k_fast.toml",
        [
            f"run={options.alone}/run",
            f"data.train={train}",
            f"data.valid={valid}",
            f"data.test={valid}",
            f"train.eval_every={options.every}",
        ],
    )
    validating = 0.0
    with prepared(recipe) as run:
        for event in run.events():
            if isinstance(event, Evaluated):
                validating += event.took
                bleu, minutes = event.metrics["bleu"], (time.perf_counter() - began) / 60
                told = {"step": event.step, "bleu": bleu, "minutes": minutes}
                print(json.dumps(told | {"training": minutes - validating / 60}), flush=True)
                if bleu >= options.bleu:
                    return


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tools = {"regard": regard, "joeynmt": joeynmt}
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tools", nargs="+", choices=tools, default=list(tools))
    parser.add_argument("--bleu", type=float, default=36.0)
    parser.add_argument("--minutes", type=float, default=180.0, help="when to give up")
    parser.add_argument("--every", type=int, default=500, help="steps between validations")
    parser.add_argument("--lr", type=float, help="JoeyNMT's, instead of its config's")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--append", type=Path, help="Markdown file to add a dated section to")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        alone(options)
        return
    install_peers()
    rows = []
    for tool in options.tools:
        with tempfile.TemporaryDirectory() as folder:
            for found in tools[tool](options, Path(folder)):
                print(
                    f"{tool:8} step {found['step']:6} {found['bleu']:5.2f} {found['minutes']:6.1f} min, "
                    f"{found['training']:6.1f} without validations",
                    flush=True,
                )
            reached = "reached" if found["bleu"] >= options.bleu else "not reached"
            spent = f"{found['minutes']:.1f} | {found['training']:.1f}"
            rows.append(f"| {tool} | {reached} | {spent} | {found['step']} | {found['bleu']:.2f} |")
    table = "\n".join(
        [
            f"| tool | greedy BLEU {options.bleu:g} on val | minutes | without validations | steps | BLEU |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )
    print(f"\n{table}")
    if options.append:
        facts = f"Machine: {machine()}; threads: {options.threads}."
        with options.append.open("a", encoding="utf-8") as file:
            file.write(f"\n## Time to quality, {date.today()}\n\n{facts}\n\n{table}\n")


if __name__ == "__main__":
    main()
