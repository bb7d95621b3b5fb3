"""Training speed of regard beside JoeyNMT and Hugging Face's Marian: same model, same tokens, same machine.

    python bench/train_speed.py --data DIR [--append bench/RESULTS.md]

DIR holds Multi30k's `train.en.gz` and `train.de.gz` (the task's lowercased, tokenised files). Every worker is
a fresh process; rounds interleave the tools; the machine's matrix-product rate is probed between any two
workers, so that a slow minute of the machine shows.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import mean, median
from typing import Any

BENCH = Path(__file__).resolve().parent
WORKERS = BENCH / "workers"
sys.path[:0] = [str(BENCH), str(WORKERS)]

from corpus import prepare  # noqa: E402
from model import VOCABULARY, rnn_flops, transformer_flops  # noqa: E402

OURS = sys.executable
PEERS = BENCH / "peers" / ".venv" / "bin" / "python"
COMMANDS: dict[str, list[str]] = {
    "regard": [OURS, "regard_train.py"],
    "joeynmt": [str(PEERS), "joeynmt_train.py"],
    "hf": [str(PEERS), "hf_marian.py"],
    "hf_bucketed": [str(PEERS), "hf_marian.py", "--batches", "bucketed"],
    "regard_bfloat16": [OURS, "regard_train.py", "--precision", "bfloat16"],
    "hf_bucketed_bfloat16": [str(PEERS), "hf_marian.py", "--batches", "bucketed", "--bfloat16"],
    "regard_rnn": [OURS, "regard_train.py", "--model", "rnn"],
    "joeynmt_rnn": [str(PEERS), "joeynmt_train.py", "--model", "rnn"],
}
DEFAULT_TOOLS = [tool for tool in COMMANDS if not tool.endswith("_bfloat16")]


@dataclass(frozen=True)
class Run:
    """One worker's answer, and the machine's rate (1024³ matrix products) around it."""

    tool: str
    answer: dict[str, Any]
    gflops: float
    share: float


def install_peers() -> None:
    """Makes or remakes the peers' environment whenever the list of peers is not the installed one."""
    wanted, installed = BENCH / "peers.txt", BENCH / "peers" / "installed.txt"
    if installed.exists() and installed.read_text() == wanted.read_text():
        return
    folder = PEERS.parents[1]
    print(f"installing the peers into {folder.relative_to(BENCH.parent)} …", flush=True)
    subprocess.run([OURS, "-m", "venv", "--clear", str(folder)], check=True)
    subprocess.run([str(PEERS), "-m", "pip", "install", "--quiet", "-r", str(wanted)], check=True)
    shutil.copy(wanted, installed)


def ask(command: Sequence[str], threads: int) -> dict[str, Any]:
    """Runs a worker in its own process; its answer is the last line it prints."""
    python, script, *options = command
    environment = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        [python, str(WORKERS / script), *options],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{script} failed with {done.returncode}:\n{done.stderr[-3000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def measure(
    options: argparse.Namespace, corpus: Path, source_per_target: float
) -> tuple[list[Run], list[dict[str, Any]]]:
    clock = ["--corpus", str(corpus), "--warmup", str(options.warmup), "--seconds", str(options.seconds)]
    probe = [OURS, "matmul.py"]
    probes, runs = [ask(probe, options.threads)], []
    for number in range(options.rounds):
        for tool in options.tools:
            answer = ask([*COMMANDS[tool], *clock], options.threads)
            probes.append(ask(probe, options.threads))
            gflops = mean(found["gflops"]["cube"] for found in probes[-2:])
            share = flops(tool, source_per_target) * answer["target_tokens_per_s"] / (gflops * 1e9)
            runs.append(Run(tool, answer, gflops, share))
            print(
                f"round {number + 1}  {tool:12} {answer['target_tokens_per_s']:7.0f} target tokens/s  "
                f"{share:4.0%} of {gflops:.0f} GFLOP/s  "
                f"loss {answer['loss_first']:.2f} → {answer['loss_last']:.2f}",
                flush=True,
            )
    return runs, probes


def flops(tool: str, source_per_target: float) -> float:
    return (rnn_flops if tool.endswith("_rnn") else transformer_flops)(source_per_target)


def table(runs: Sequence[Run], source_per_target: float) -> str:
    """Markdown, one row per tool; ratios are of medians."""
    by_tool: dict[str, list[Run]] = {}
    for run in runs:
        by_tool.setdefault(run.tool, []).append(run)
    speed = {
        tool: median(run.answer["target_tokens_per_s"] for run in found) for tool, found in by_tool.items()
    }
    lines = [
        "| tool | target tokens/s, each round | median | regard is | MFLOP/token "
        "| share of matrix-product rate | tokens/step | parameters |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for tool, found in by_tool.items():
        _, *kind = tool.split("_")
        own = "_".join(["regard", *(part for part in kind if part != "bucketed")])
        cells = [
            tool,
            ", ".join(f"{run.answer['target_tokens_per_s']:.0f}" for run in found),
            f"{speed[tool]:.0f}",
            f"{speed[own] / speed[tool]:.2f}×" if own in speed and own != tool else "",
            f"{flops(tool, source_per_target) / 1e6:.1f}",
            f"{median(run.share for run in found):.0%} of {median(run.gflops for run in found):.0f} GFLOP/s",
            f"{mean(run.answer['target_tokens_per_step'] for run in found):.0f}",
            f"{found[0].answer['parameters']:,}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine() -> str:
    listing = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
    model = next(
        line.split(":", 1)[1].strip() for line in listing.splitlines() if line.startswith("Model name")
    )
    return f"{model}, {os.cpu_count()} cores"


def section(options: argparse.Namespace, runs: Sequence[Run], rows: str) -> str:
    rates = [run.gflops for run in runs]
    versions: dict[str, str] = {}
    for run in runs:
        versions |= run.answer["versions"]
    command = shlex.join(["python", "bench/train_speed.py", *sys.argv[1:]]).replace(str(options.data), "DIR")
    facts = [
        f"Machine: {machine()}; threads: {options.threads}; single precision but where it says bfloat16.",
        "Versions: " + ", ".join(f"{name} {number}" for name, number in sorted(versions.items())) + ".",
        f"Each number: {options.seconds:g} s after {options.warmup} warm-up steps in a fresh process.",
        f"Matrix products (1024³) in the course of the run: {min(rates):.0f} to {max(rates):.0f} GFLOP/s.",
    ]
    return f"\n## Training speed, {date.today()}\n\n`{command}`\n\n" + "\n".join(facts) + f"\n\n{rows}\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with train.en.gz and train.de.gz")
    parser.add_argument("--tools", nargs="+", choices=COMMANDS, default=DEFAULT_TOOLS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=5, help="steps before the clock starts")
    parser.add_argument("--seconds", type=float, default=40.0, help="measured time of each worker")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--json", type=Path, default=Path("runs/train_speed.json"), help="every number goes here"
    )
    parser.add_argument("--append", type=Path, help="Markdown file to add a dated section to")
    options = parser.parse_args()

    install_peers()
    with tempfile.TemporaryDirectory() as folder:
        counts = prepare(options.data, Path(folder), VOCABULARY)
        source_per_target = counts["tokens_en"] / counts["tokens_de"]
        runs, probes = measure(options, Path(folder), source_per_target)
    rows = table(runs, source_per_target)
    print(f"\n{rows}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    everything = {"counts": counts, "runs": [asdict(run) for run in runs], "probes": probes}
    options.json.write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    if options.append:
        with options.append.open("a", encoding="utf-8") as file:
            file.write(section(options, runs, rows))


if __name__ == "__main__":
    main()
