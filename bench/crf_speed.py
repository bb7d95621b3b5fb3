"""Speed of the CRF beside pytorch-crf: loss, gradients and best tags of the same batch with the same weights.

    python bench/crf_speed.py [--append bench/RESULTS.md]

Every worker is a fresh process; rounds interleave the tools. Losses and tags must agree.
"""

import argparse
import math
import shlex
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH)]

from train_speed import OURS, PEERS, ask, install_peers, machine  # noqa: E402

TOOLS = {"regard": OURS, "pytorch-crf": str(PEERS)}


def measure(options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {tool: [] for tool in TOOLS}
    how = ["--sizes", *map(str, options.sizes), "--seconds", str(options.seconds)]
    for number in range(options.rounds):
        for tool, python in TOOLS.items():
            found[tool].append(ask([python, "crf.py", tool, *how], options.threads))
        ours, theirs = (found[tool][-1] for tool in TOOLS)
        if not math.isclose(ours["loss"], theirs["loss"], rel_tol=1e-4) or ours["tags"] != theirs["tags"]:
            raise SystemExit(f"the tools disagree: losses {ours['loss']:.4f} and {theirs['loss']:.4f}")
        print(
            f"round {number + 1}  {ours['milliseconds']:.2f} and {theirs['milliseconds']:.2f} ms, "
            f"{theirs['milliseconds'] / ours['milliseconds']:.2f}×",
            flush=True,
        )
    return found


def section(options: argparse.Namespace, found: dict[str, list[dict[str, Any]]]) -> str:
    middle = {tool: median(told["milliseconds"] for told in answers) for tool, answers in found.items()}
    versions = {name: number for answers in found.values() for name, number in answers[0]["versions"].items()}
    n_batch, n_words, n_tags = options.sizes
    rows = ["| tool | milliseconds, each round | median | regard is |", "|---|---|---|---|"]
    for tool, answers in found.items():
        each = ", ".join(f"{told['milliseconds']:.2f}" for told in answers)
        times = "" if tool == "regard" else f"{middle[tool] / middle['regard']:.2f}×"
        rows.append(f"| {tool} | {each} | {middle[tool]:.2f} | {times} |")
    return (
        f"\n## CRF, {date.today()}\n\n"
        f"`{shlex.join(['python', 'bench/crf_speed.py', *sys.argv[1:]])}`\n\n"
        f"Machine: {machine()}; threads: {options.threads}. "
        f"Versions: {', '.join(f'{name} {number}' for name, number in sorted(versions.items()))}.\n"
        f"Loss, gradients and best tags of {n_batch} sentences of {n_words} words with {n_tags} tags.\n\n"
        + "\n".join(rows)
        + "\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs=3, default=[64, 50, 20], help="batch, length, tags")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each worker")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--append", type=Path, help="Markdown file to add a dated section to")
    options = parser.parse_args(arguments)
    install_peers()
    told = section(options, measure(options))
    print(told)
    if options.append:
        with options.append.open("a", encoding="utf-8") as file:
            file.write(told)


if __name__ == "__main__":
    main()
