"""Proof that no number has changed since a revision: the same trainings there and here, to the bit.

    python bench/same_as.py REV [--cases smoke|all|name,name] [--jobs 2]

REV is checked out in a worktree under `.same-as/`; the worker (always that of this tree) trains every case
with its regard and with this tree's, on one thread each, and writes down losses, gradient norms, weights,
vocabularies, answers, scores and explanations. What REV said is kept, so that a second run only runs the new
side. A line for each difference, a table at the end; the status is 1 if there is any. Prose (titles, notes,
what the doctor says) is compared by its numbers; a change of its wording is told and is no fault, unless
`--words` makes it one.
"""

import argparse
import hashlib
import inspect
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
TREE = BENCH.parent
WORKERS = BENCH / "workers"
CACHE = TREE / ".same-as"
sys.path[:0] = [str(BENCH), str(WORKERS)]

import same_cases  # noqa: E402
import same_sides  # noqa: E402
from same_cases import Case  # noqa: E402

PARTS = ("steps", "weights", "answers", "scores", "maps")
WORDS = "words"
"""Titles, sentences and notes: their numbers are compared with the parts, their wording is only told."""
TOGETHER = 6
"""Cases that one process works through: importing torch takes longer than most of them."""
PATIENCE = 1800
"""Seconds for these at most."""
NOTHING = "nothing"
HASH = re.compile("[0-9a-f]{64}$")


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(TREE), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def checked_out(rev: str) -> tuple[str, Path]:
    """The full name of a revision, and a worktree with it."""
    try:
        full = git("rev-parse", "--verify", f"{rev}^{{commit}}")
    except subprocess.CalledProcessError:
        raise SystemExit(f"{rev}: no such revision; give a commit, a branch or a tag") from None
    folder = CACHE / "trees" / full[:12]
    if not (folder / "src" / "regard").is_dir():
        git("worktree", "prune")
        git("worktree", "add", "--force", "--detach", str(folder), full)
    changed = subprocess.run(
        ["git", "-C", str(folder), "status", "--porcelain"], capture_output=True, text=True, check=True
    ).stdout
    if changed:
        raise SystemExit(f"{folder}: is no longer as it was checked out; delete it:\n{changed}")
    return full, folder


def machine() -> str:
    """What decides, beside the code, which bits come out."""
    cpus = Path("/proc/cpuinfo")
    names = {line for line in cpus.read_text().splitlines() if line.startswith(("model name", "flags"))}
    packages = {name: version(name) for name in ("torch", "numpy", "tokenizers", "safetensors", "sacrebleu")}
    return json.dumps([platform.node(), platform.python_version(), sorted(names), packages])


def key(revision: str, case: Case, threads: int) -> str:
    """Of what a baseline depends on."""
    code = [(WORKERS / name).read_bytes() for name in ("same_as.py", "same_data.py", "same_folders.py")]
    told = [
        revision,
        machine(),
        threads,
        case.job("old"),
        inspect.getsource(same_sides.Old),
        same_sides.ANSWERS,
    ]
    return hashlib.sha256(b"".join([*code, json.dumps(told).encode()])).hexdigest()[:20]


@dataclass(frozen=True)
class Batch:
    """Cases that one process works through on one side."""

    side: str
    tree: Path
    jobs: tuple[dict[str, Any], ...]


def batches(side: str, tree: Path, todo: Sequence[tuple[Case, Path]], n_jobs: int) -> Iterator[Batch]:
    """Few enough in each that all jobs have something to do."""
    size = max(1, min(TOGETHER, -(-len(todo) // n_jobs)))
    for at in range(0, len(todo), size):
        jobs = (case.job(side) | {"out": str(out)} for case, out in todo[at : at + size])
        yield Batch(side, tree, tuple(jobs))


def environment(tree: Path, threads: int) -> dict[str, str]:
    """Of a process that imports the regard of a tree."""
    return os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "RAYON_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }


def work(batch: Batch, threads: int) -> int:
    """Run a worker on a batch, and say how many jobs these were; what it found is in the files they name."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = Path(folder) / "jobs.json"
        jobs.write_text(json.dumps(batch.jobs), "utf-8")
        command = [sys.executable, str(WORKERS / "same_as.py"), str(jobs), "--side", batch.side]
        command += ["--tree", str(batch.tree), "--threads", str(threads)]
        said = run_alone(command, environment(batch.tree, threads), folder)
    for job in batch.jobs:
        if not Path(job["out"]).exists():
            Path(job["out"]).parent.mkdir(parents=True, exist_ok=True)
            Path(job["out"]).write_text(json.dumps({"error": said, "seconds": 0}), "utf-8")
    return len(batch.jobs)


def run_alone(command: list[str], environment: dict[str, str], folder: str) -> str:
    """Run a command and all that it starts, which end with it; what it said in the end."""
    with tempfile.TemporaryFile("w+") as said:
        worker = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=said, stderr=said, start_new_session=True
        )
        try:
            fault = f"the worker ended with {worker.wait(PATIENCE)}"
        except subprocess.TimeoutExpired:
            fault = f"the worker took more than {PATIENCE} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        said.seek(0)
        return f"{fault}:\n{said.read()[-3000:]}"


def first_difference(old: Any, new: Any, where: str = "") -> tuple[str, Any, Any] | None:
    """The first place where two values differ, and what is there; floats must be the same to the bit."""
    if is_hashes(old) and is_hashes(new):
        gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
        if not gone and not come:
            return None
        where = f"{where} ({gone.total()} of {len(old)} gone, {come.total()} new)"
        return where.lstrip(". "), next(iter(gone), NOTHING), next(iter(come), NOTHING)
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            found = first_difference(old.get(name, NOTHING), new.get(name, NOTHING), f"{where}.{name}")
            if found:
                return found
        return None
    if isinstance(old, list) and isinstance(new, list):
        for place in range(max(len(old), len(new))):
            was, now = (side[place] if place < len(side) else NOTHING for side in (old, new))
            found = first_difference(was, now, f"{where}[{place}]")
            if found:
                return found
        return None
    same = type(old) is type(new) and repr(old) == repr(new)
    return None if same else (where.removeprefix("."), old, new)


def is_hashes(value: Any) -> bool:
    """Whether it is a multiset of hashes, whose order says nothing."""
    return isinstance(value, list) and bool(value) and all(HASH.search(str(one)) for one in value)


def short(value: Any) -> str:
    """One line of a few words."""
    value = HASH.sub(lambda found: found[0][:12], value) if isinstance(value, str) else value
    told = repr(value) if not isinstance(value, dict | list) else json.dumps(value, ensure_ascii=False)
    return told if len(told) <= 90 else told[:87] + "…"


def compared(case: str, old: dict[str, Any], new: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """A sign for each part, and a line for each thing in which the sides differ."""
    failed = {side: told["error"] for side, told in (("old", old), ("new", new)) if "error" in told}
    for side, error in failed.items():
        (CACHE / "errors").mkdir(parents=True, exist_ok=True)
        (CACHE / "errors" / f"{case}-{side}.txt").write_text(error, "utf-8")
    if failed:
        where = CACHE.relative_to(TREE) / "errors"
        return dict.fromkeys(PARTS, "!"), [
            f"{case}: {side} failed, {error.strip().splitlines()[-1]} ({where}/{case}-{side}.txt)"
            for side, error in failed.items()
        ]
    signs, lines = {}, []
    for part in PARTS:
        own, other = old["facts"][part], new["facts"][part]
        found = [
            (what, *difference)
            for what in [*own, *(name for name in other if name not in own)]
            if (difference := first_difference(own.get(what, NOTHING), other.get(what, NOTHING)))
        ]
        signs[part] = "≠" if found else "="
        lines += [
            f"{case}: {part}, {what}{f', at {where}' if where else ''}: old {short(was)}, new {short(now)}"
            for what, where, was, now in found
        ]
    return signs, lines


def reworded(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """What is said in other words, or in another order, whose numbers are the same."""
    if "error" in old or "error" in new:
        return
    before, after = old["facts"]["words"], new["facts"]["words"]
    for about in sorted({*before, *after}):
        gone, come = (list(dict.fromkeys(side.get(about, ()))) for side in (before, after))
        if gone != come:
            was, now = (
                [one for one in own if one not in other] for own, other in ((gone, come), (come, gone))
            )
            yield f"{about}: old {short((was or [NOTHING])[0])}, new {short((now or [NOTHING])[0])}"


def table(rows: dict[str, dict[str, str]]) -> str:
    width = max(map(len, rows))
    head = f"{'case':{width}} | " + " | ".join((*PARTS, WORDS))
    lines = (
        f"{name:{width}} | " + " | ".join(f"{signs[part]:^{len(part)}}" for part in (*PARTS, WORDS))
        for name, signs in rows.items()
    )
    return "\n".join([head, *lines])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rev", help="the revision to compare with")
    parser.add_argument("--cases", default="smoke", help="smoke, all, or names with commas between (tag-*)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--threads", type=int, default=1, help="of each")
    parser.add_argument("--words", action="store_true", help="other words of the same numbers are faults too")
    parser.add_argument("--again", action="store_true", help="also run what is kept of the revision again")
    options = parser.parse_args()

    began = time.perf_counter()
    cases = same_cases.chosen(options.cases)
    revision, tree = checked_out(options.rev)
    baseline = {
        case.name: CACHE
        / "baselines"
        / revision[:12]
        / f"{case.name}-{key(revision, case, options.threads)}.json"
        for case in cases
    }
    with tempfile.TemporaryDirectory() as folder:
        fresh = {case.name: Path(folder) / f"{case.name}.json" for case in cases}
        todo = [
            (case, baseline[case.name]) for case in cases if options.again or not baseline[case.name].exists()
        ]
        for _, kept in todo:
            kept.unlink(missing_ok=True)
        work_list = [
            *batches("old", tree, todo, options.jobs),
            *batches("new", TREE, [(case, fresh[case.name]) for case in cases], options.jobs),
        ]
        print(f"{len(cases)} cases, {len(cases) - len(todo)} of them kept of {revision[:12]}", flush=True)
        with ThreadPoolExecutor(options.jobs) as pool:
            n_done, n_all = 0, sum(len(batch.jobs) for batch in work_list)
            for n_jobs in pool.map(lambda batch: work(batch, options.threads), work_list):
                n_done += n_jobs
                print(f"{n_done} of {n_all} trainings, {time.perf_counter() - began:.0f} s", flush=True)
        rows, lines = {}, []
        words: Counter[str] = Counter()
        for case in cases:
            old, new = (json.loads(path[case.name].read_text("utf-8")) for path in (baseline, fresh))
            if "error" in old:
                baseline[case.name].unlink()
            rows[case.name], found = compared(case.name, old, new)
            lines += found
            others = list(reworded(old, new))
            rows[case.name][WORDS] = "~" if others else "="
            words.update(others)
    told = [f"in other words ({n} case{'s' * (n > 1)}), {one}" for one, n in words.items()]
    print("\n".join([*lines, *told, "", table(rows), ""]))
    n_same = sum(all(signs[part] == "=" for part in PARTS) for signs in rows.values())
    took = time.perf_counter() - began
    print(f"{n_same} of {len(cases)} cases are the same as at {revision[:12]}, in {took:.0f} s")
    sys.exit(0 if n_same == len(cases) and not (words and options.words) else 1)


if __name__ == "__main__":
    main()
