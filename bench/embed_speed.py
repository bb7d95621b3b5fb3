"""Sentence vectors beside sentence-transformers: the same model and texts, how fast, and how far they differ.

    python bench/embed_speed.py --model FOLDER --texts FILE [FILE …] [--append bench/RESULTS.md]

Texts are lines of the files (plain or .gz, of .tsv the first column), so many of each, shuffled: short ones
among long ones. Every worker is a fresh process; rounds interleave the tools.
"""

import argparse
import gzip
import json
import random
import shlex
import sys
import tempfile
from datetime import date
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH)]

from train_speed import OURS, PEERS, ask, install_peers, machine  # noqa: E402

TOOLS = {"regard": OURS, "sentence-transformers": str(PEERS)}


def lines(path: Path, most: int) -> list[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        filled = (line.split("\t")[0].strip() for line in file if line.strip())
        return list(islice(filled, most))


def measure(options: argparse.Namespace, texts: list[str]) -> tuple[dict[str, list[dict[str, Any]]], float]:
    found: dict[str, list[dict[str, Any]]] = {tool: [] for tool in TOOLS}
    with tempfile.TemporaryDirectory() as scratch:
        told = Path(scratch) / "texts.json"
        told.write_text(json.dumps(texts), "utf-8")
        files = {tool: Path(scratch) / f"{tool}.npy" for tool in TOOLS}
        for number in range(options.rounds):
            for tool, python in TOOLS.items():
                command = [python, "embed.py", tool, str(options.model), str(told), str(files[tool])]
                found[tool].append(ask(command, options.threads))
            rates = ", ".join(f"{tool} {own[-1]['sentences_per_s']:.0f}" for tool, own in found.items())
            print(f"round {number + 1}: {rates} sentences/s", flush=True)
        ours, theirs = (np.load(path) for path in files.values())
    return found, float(np.abs(ours - theirs).max())


def section(
    options: argparse.Namespace, texts: list[str], found: dict[str, list[dict[str, Any]]], apart: float
) -> str:
    rates = {tool: [told["sentences_per_s"] for told in own] for tool, own in found.items()}
    middle = {tool: median(own) for tool, own in rates.items()}
    rows = ["| tool | sentences/s, each round | median | regard is |", "|---|---|---|---|"]
    for tool, own in rates.items():
        times = "" if tool == "regard" else f"{middle['regard'] / middle[tool]:.2f}×"
        rows.append(f"| {tool} | {', '.join(f'{one:.0f}' for one in own)} | {middle[tool]:.0f} | {times} |")
    versions = {name: number for own in found.values() for name, number in own[0]["versions"].items()}
    lengths = sorted(len(text.split()) for text in texts)
    command = shlex.join(["python", "bench/embed_speed.py", *sys.argv[1:]])
    for path, name in ((options.model, "FOLDER"), *((file, file.name) for file in options.texts)):
        command = command.replace(str(path), name)
    return (
        f"\n## Sentence vectors, {date.today()}\n\n`{command}`\n\n"
        f"Machine: {machine()}; threads: {options.threads}. "
        f"Versions: {', '.join(f'{name} {number}' for name, number in sorted(versions.items()))}.\n"
        f"{len(texts):,} texts of {lengths[0]} to {lengths[-1]} words, half of them of at most "
        f"{lengths[len(lengths) // 2]}. "
        f"The vectors differ by {apart:.1e} at most.\n\n" + "\n".join(rows) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="folder of the sentence encoder")
    parser.add_argument("--texts", type=Path, nargs="+", required=True)
    parser.add_argument("--most", type=int, default=1000, help="texts of each file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--append", type=Path, help="Markdown file to add a dated section to")
    options = parser.parse_args()
    install_peers()
    texts = [text for file in options.texts for text in lines(file, options.most)]
    random.Random(1).shuffle(texts)
    told = section(options, texts, *measure(options, texts))
    print(told)
    if options.append:
        with options.append.open("a", encoding="utf-8") as file:
            file.write(told)


if __name__ == "__main__":
    main()
