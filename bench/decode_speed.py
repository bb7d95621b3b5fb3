"""Translating speed of regard beside Hugging Face's generate: same weights, same texts, same batches.

    python bench/decode_speed.py --run RUN [--run RUN …] --texts FILE [--append bench/RESULTS.md]

Each run is a trained Transformer translator with a twin in Hugging Face's library (`regard export --to hf`).
Every worker is a fresh process; rounds interleave the engines. Batches of one take the first hundred texts.
"""

import argparse
import shlex
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH)]

from train_speed import OURS, ask, machine  # noqa: E402

import regard  # noqa: E402
from regard.files.lines import lines  # noqa: E402

CASES = [(beam, batch) for beam in (1, 4) for batch in (64, 1)]
ALONE = 100
"""Texts that are translated one by one."""


def measure(options: argparse.Namespace, folder: Path) -> dict[tuple[str, int, int], dict[str, Any]]:
    texts = list(lines(str(options.texts), encoding="utf-8"))
    files = {64: folder / "all.txt", 1: folder / "some.txt"}
    files[64].write_text("\n".join(texts) + "\n", "utf-8")
    files[1].write_text("\n".join(texts[:ALONE]) + "\n", "utf-8")
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    for run in options.run:
        exported = folder / run.name
        report = regard.load(run).export(exported, "hf", texts[:200])
        print(f"{run.name}: {report.identical:.1%} of 200 answers alike when both rank by probability alone")
        for number in range(options.rounds):
            for beam, batch in CASES:
                case = found.setdefault((run.name, beam, batch), {"regard": [], "hf": []})
                for engine, where in (("regard", run), ("hf", exported)):
                    how = [engine, str(where), str(files[batch]), "--beam", str(beam), "--batch", str(batch)]
                    told = ask([OURS, "decode.py", *how], options.threads)
                    case[engine].append(told["texts_per_s"])
                    case[f"{engine} answers"] = told["answers"]
                    case.setdefault("versions", {}).update(told["versions"])
                ours, theirs = case["regard"][-1], case["hf"][-1]
                print(
                    f"round {number + 1}  {run.name} beam {beam} batch {batch}: {ours:.1f} and {theirs:.1f} "
                    f"texts/s, {ours / theirs:.2f}×",
                    flush=True,
                )
    return found


def table(found: dict[tuple[str, int, int], dict[str, Any]]) -> str:
    rows = [
        "| model | beam | batch | regard, texts/s | Hugging Face, texts/s | regard is | same answers |",
        "|---|---|---|---|---|---|---|",
    ]
    for (run, beam, batch), case in found.items():
        ours, theirs = median(case["regard"]), median(case["hf"])
        pairs = list(zip(case["regard answers"], case["hf answers"], strict=True))
        alike = sum(one == other for one, other in pairs) / len(pairs)
        cells = [run, beam, batch, f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.2f}×", f"{alike:.0%}"]
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(rows)


def section(options: argparse.Namespace, found: dict[tuple[str, int, int], dict[str, Any]], rows: str) -> str:
    versions: dict[str, str] = {}
    for case in found.values():
        versions |= case["versions"]
    named = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    command = shlex.join(["python", "bench/decode_speed.py", *sys.argv[1:]])
    for path, stand_in in [(run, f"RUN{n}") for n, run in enumerate(options.run, 1)] + [
        (options.texts, "FILE")
    ]:
        command = command.replace(str(path), stand_in)
    return (
        f"\n## Translating speed, {date.today()}\n\n`{command}`\n\n"
        f"Machine: {machine()}; threads: {options.threads}; single precision. Versions: {named}.\n"
        f"Medians of {options.rounds} interleaved rounds; tokenising counts; batches are the same.\n"
        "Length penalties differ (see docs/export.md), so beams need not give the same answers.\n\n"
        f"{rows}\n"
    )


def campaign(description: str | None) -> argparse.ArgumentParser:
    """What every comparison of translators can be told."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=Path, required=True, help="one a line, plain or .gz")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--append", type=Path, help="Markdown file to add a dated section to")
    return parser


def tell(options: argparse.Namespace, rows: str, section: str) -> None:
    print(f"\n{rows}")
    if options.append:
        with options.append.open("a", encoding="utf-8") as file:
            file.write(section)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = campaign(__doc__)
    parser.add_argument("--run", type=Path, action="append", required=True)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options, Path(folder))
    rows = table(found)
    tell(options, rows, section(options, found, rows))


if __name__ == "__main__":
    main()
