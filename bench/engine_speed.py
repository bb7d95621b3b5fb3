"""What `--engine auto` makes of CTranslate2, beside CTranslate2 itself in the settings one would try.

    python bench/engine_speed.py --run RUN --texts FILE [--append bench/RESULTS.md]

Every engine is given the whole file, tokenising counts, every worker is a fresh process, rounds interleave.
"""

import argparse
import shlex
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import median

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH)]

from decode_speed import campaign, tell  # noqa: E402
from train_speed import OURS, ask, machine  # noqa: E402

import regard  # noqa: E402
from regard.files.lines import lines  # noqa: E402

GRID = [
    (1, "examples", 64),
    (2, "examples", 32),
    (2, "examples", 64),
    (2, "tokens", 1024),
]
"""Translations beside each other; how batches are counted, and their size. Of more that were tried once these
were the best, besides one that gives both threads to one translation.
"""
AUTO = "regard, engine auto"
LEAST_ALIKE = 0.7
"""Of answers; stopping rules and length penalties differ, and int8 rounds."""
Case = tuple[int, bool]


def alike(ours: list[str], theirs: list[str]) -> float:
    return sum(one == other for one, other in zip(ours, theirs, strict=True)) / len(ours)


def named(inter: int, batch_type: str, size: int, threads: int) -> str:
    return f"CTranslate2, {inter} × {threads // inter} threads, batches of {size} {batch_type}"


def measure(options: argparse.Namespace, folder: Path) -> dict[Case, dict[str, list[float]]]:
    texts = folder / "texts.txt"
    texts.write_text("\n".join(lines(str(options.texts), encoding="utf-8")) + "\n", "utf-8")
    trained = regard.load(options.run)
    for int8 in (False, True):
        trained.export(
            folder / f"int8-{int8}", "ct2", list(lines(str(texts), encoding="utf-8"))[:200], int8=int8
        )
    found: dict[Case, dict[str, list[float]]] = {}
    for number, (beam, int8) in product(range(options.rounds), product(options.beams, (False, True))):
        case = found.setdefault((beam, int8), {})
        how = [str(texts), "--beam", str(beam), "--threads", str(options.threads)] + ["--int8"] * int8
        commands = {AUTO: ["auto", str(options.run), *how]}
        for inter, batch_type, size in GRID:
            settings = ["--inter", str(inter), "--batch-type", batch_type, "--max-batch-size", str(size)]
            commands[named(inter, batch_type, size, options.threads)] = [
                "ct2",
                str(folder / f"int8-{int8}"),
                *how,
                *settings,
            ]
        answers: dict[str, list[str]] = {}
        for name, command in commands.items():
            told = ask([OURS, "decode.py", *command], options.threads)
            case.setdefault(name, []).append(told["texts_per_s"])
            answers[name] = told["answers"]
            if alike(answers[AUTO], answers[name]) < LEAST_ALIKE:
                raise SystemExit(f"{name} answers otherwise than {AUTO}: {answers[name][0]}")
            print(
                f"round {number + 1}  beam {beam} {_precision(int8)} {name}: {case[name][-1]:.0f} texts/s",
                flush=True,
            )
    return found


def table(found: dict[Case, dict[str, list[float]]]) -> str:
    rows = [
        "| beam | | auto, texts/s | the best of CTranslate2 | auto is | which is best |",
        "|---|---|---|---|---|---|",
    ]
    for (beam, int8), case in found.items():
        rates = {name: median(each) for name, each in case.items()}
        ours = rates.pop(AUTO)
        best = max(rates, key=lambda name: rates[name])
        compared = [f"{ours:.0f}", f"{rates[best]:.0f}", f"{ours / rates[best]:.2f}×"]
        rows.append("| " + " | ".join([str(beam), _precision(int8), *compared, best]) + " |")
    return "\n".join(rows)


def _precision(int8: bool) -> str:
    return "int8" if int8 else "float32"


def section(options: argparse.Namespace, rows: str) -> str:
    command = shlex.join(["python", "bench/engine_speed.py", *sys.argv[1:]])
    command = command.replace(str(options.run), "RUN").replace(str(options.texts), "FILE")
    return (
        f"\n## What auto makes of CTranslate2, {date.today()}\n\n`{command}`\n\n"
        f"Machine: {machine()}; threads: {options.threads}; ctranslate2 {version('ctranslate2')}.\n"
        f"Medians of {options.rounds} interleaved rounds; tokenising counts; "
        f"CTranslate2 in {len(GRID)} settings.\n\n"
        f"{rows}\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = campaign(__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        rows = table(measure(options, Path(folder)))
    tell(options, rows, section(options, rows))


if __name__ == "__main__":
    main()
