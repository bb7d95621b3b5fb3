"""An epoch of SASRec beside RecBole's: same pairs of history and next item, length, width, dropout, softmax.

    python bench/recommend_beside_recbole.py sequences.txt.gz --rounds 3

A line of the file is `user item item ...`; the last two items of each are held out, as in leave-last-out.
RecBole has an environment of its own, made here. It takes minutes an epoch, so that some of its batches are
timed, after one that warms up; regard's epoch is timed whole, or some of its steps. Rounds alternate, each
worker is a fresh process, and times are the processor's, which other work on the machine disturbs less.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

BENCH = Path(__file__).resolve().parent
PEER = BENCH / "peers" / "recbole"


def install() -> Path:
    """Makes or remakes the environment whenever the list is not the installed one."""
    wanted, installed = BENCH / "peers_recbole.txt", PEER.with_name("recbole.txt")
    if not installed.exists() or installed.read_text() != wanted.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(PEER)], check=True)
        python = PEER / "bin" / "python"
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "-r", str(wanted)], check=True)
        shutil.copy(wanted, installed)
    return PEER / "bin" / "python"


def spent(python: str | Path, script: str, *options: object) -> dict[str, float]:
    """Seconds of the processor for each thousand pairs, and the pairs of an epoch."""
    command = [str(python), str(BENCH / "workers" / script), *map(str, options)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    return {"cost": 1000 * answer["cpu_seconds"] / answer["pairs"], "epoch": answer["pairs_of_epoch"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sequences", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=2, help="of 2,048 pairs, that RecBole is timed with")
    parser.add_argument("--steps", type=int, help="that regard is timed with; an epoch by default")
    parser.add_argument("--negatives", type=int, help="regard's sampled softmax instead of the whole")
    parser.add_argument("--python", type=Path, help="of an environment that has RecBole already")
    options = parser.parse_args()
    threads = os.environ.get("OMP_NUM_THREADS", "2")
    python = options.python or install()
    ours: list[dict[str, float]] = []
    peers: list[dict[str, float]] = []
    more = [
        part
        for name in ("steps", "negatives")
        for part in (f"--{name}", getattr(options, name))
        if getattr(options, name)
    ]
    for round_ in range(1, options.rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            how = ("--folder", folder, "--batches", options.batches, "--threads", threads)
            peers.append(spent(python, "recbole_sasrec.py", options.sequences, *how))
        ours.append(
            spent(sys.executable, "regard_recommend.py", options.sequences, "--threads", threads, *more)
        )
        one, other = (each["cost"] * each["epoch"] / 1000 for each in (ours[-1], peers[-1]))
        print(
            f"round {round_}: an epoch of {ours[-1]['epoch']:,} pairs takes {one:.1f} s of the processor, ",
            end="",
        )
        print(f"RecBole's {other:.1f} s: 1/{other / one:.1f}", flush=True)
    ratio = median(other["cost"] / one["cost"] for one, other in zip(ours, peers, strict=True))
    print(f"median: an epoch takes 1/{ratio:.1f} of RecBole's processor time, {threads} threads")


if __name__ == "__main__":
    main()
