"""Works through cases of `make same-as` with one side's regard, and writes down every number it can see.

    python bench/workers/same_as.py JOBS --side old|new --tree CHECKOUT

JOBS is a JSON list of jobs (same_cases.py makes them), each with the file its facts go to. Every job runs in
a process of its own, forked once all is imported: what one leaves behind, another does not find.
"""

import argparse
import hashlib
import json
import math
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import same_data
from same_sides import ANSWERS, SIDES, Old

N_EXPLAINED = 2


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def of_array(array: Any) -> str:
    """A hash of type, shape and bytes of a numpy array; legible as far as that goes."""
    contiguous = array if array.flags["C_CONTIGUOUS"] else array.copy(order="C")
    return f"{array.dtype} {list(array.shape)} {sha(contiguous.tobytes())}"


def of_tensor(tensor: Any) -> str:
    """The same of a tensor; numpy knows no bfloat16, so the bytes are read as they are."""
    import torch

    flat = tensor.detach().cpu().contiguous().view(-1)
    data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)} {sha(data)}"


def of_tensors(tensors: Iterable[Any]) -> list[str]:
    """A multiset: names and order do not matter."""
    return sorted(map(of_tensor, tensors))


def plain(value: Any) -> Any:
    """As JSON can hold it, floats exactly (not-a-number and infinities by name)."""
    match value:
        case dict():
            return {str(key): plain(part) for key, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case float():
            return float(value) if math.isfinite(value) else str(value)
        case None | bool() | int() | str():
            return value
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


class Case:
    """One job on one side, in a folder of its own."""

    def __init__(self, job: dict[str, Any], side: Old) -> None:
        self.job, self.side = job, side
        self.recipe: dict[str, Any] = job["recipe"]
        self.run = Path(self.recipe["run"])
        self.asked: list[Any] = job["asked"]

    def facts(self) -> dict[str, Any]:
        same_data.write(Path())
        for folder in self.job["folders"]:
            same_data.FOLDERS[folder](Path(folder))
        for recipe in self.job["before"]:
            self.side.train(recipe)
        trained = self.side.train(self.recipe)
        facts = {
            "steps": self.steps(self.run),
            "weights": {
                "final": of_tensors(self.side.tensors(trained).values()),
                "checkpoint": self.checkpoint(self.run),
                "vocabulary": sorted(
                    sha(json.dumps(told, sort_keys=True).encode()) for told in self.side.vocabulary(self.run)
                ),
            },
            "answers": {
                name: self.answers(trained, self.asked, search)
                for name, search in ({"default": {}} | self.job["searches"]).items()
            },
            "scores": {
                "of the run": plain(self.side.scores(self.run)),
                "of evaluate": plain(self.side.evaluate(trained, *self.job["evaluated"])),
            },
            "maps": {
                f"of input {place + 1}": self.explanation(trained, asked)
                for place, asked in enumerate(self.job["explained"][:N_EXPLAINED])
            },
        }
        if self.job["stop_at"]:
            self.resume(facts)
        return facts

    def resume(self, facts: dict[str, Any]) -> None:
        """The same training in two parts, which has to end with the same weights."""
        recipe = self.recipe | {"run": f"{self.run}-parted"}
        self.side.train_until(recipe, self.job["stop_at"])
        stopped = self.steps(Path(recipe["run"]))["taken"]
        assert len(stopped) == self.job["stop_at"], f"stopped after {len(stopped)} steps"
        tensors = of_tensors(self.side.tensors(self.side.train(recipe)).values())
        assert tensors == facts["weights"]["final"], "parted in two, the training ended with other weights"
        facts["weights"]["resumed"] = tensors
        facts["weights"]["resumed checkpoint"] = self.checkpoint(Path(recipe["run"]))
        facts["steps"]["resumed"] = self.steps(Path(recipe["run"]))

    def steps(self, run: Path) -> dict[str, Any]:
        told = self.side.journal(run)
        named = {"taken": "step", "validated": "evaluated", "ended": "finished"}
        kept = {
            "taken": ("step", "epoch", "loss", "grad_norm", "lr", "tokens"),
            "validated": ("step", "metrics", "best", "samples"),
            "ended": ("step", "best_step", "chosen", "metrics"),
        }
        return {
            what: [
                {name: plain(entry[name]) for name in kept[what]} for entry in told if entry["event"] == event
            ]
            for what, event in named.items()
        }

    def checkpoint(self, run: Path) -> list[str]:
        from safetensors.torch import load_file

        files = self.side.last_checkpoint(run)
        return of_tensors(tensor for path in files for tensor in load_file(path).values())

    def answers(self, trained: Any, asked: list[Any], search: dict[str, Any]) -> list[Any]:
        return [self.answer(one) for one in self.side.predict(trained, asked, search)]

    def answer(self, answer: Any) -> dict[str, Any]:
        """Every attribute that a kind of answer may have, exactly; and the JSON."""
        found: dict[str, Any] = {}
        for name in ANSWERS:
            value = self.side.attribute(answer, name)
            if name in ("others", "blanks") and value is not None:
                value = [self.answer(one) for one in value]
            if value is not None:
                found[name] = plain(value)
        return found | {"json": plain(self.side.said(answer))}

    def explanation(self, trained: Any, asked: Any) -> dict[str, Any]:
        found = self.side.explain(trained, asked)
        maps = [one | {"weights": of_array(one["weights"])} for one in found.pop("maps")]
        weights = sorted(one.pop("weights") for one in maps)
        return {"weights": weights, "legends": sorted(map(plain, maps), key=json.dumps)} | plain(found)


def work(job: dict[str, Any], side: Old) -> None:
    """Run the job where nothing else is; a failure is a fact too, of which the caller makes an error."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            told = {"facts": Case(job, side).facts()}
        except Exception:
            told = {"error": traceback.format_exc()}
        os.chdir("/")
    told["seconds"] = round(time.perf_counter() - began, 2)
    partial = Path(job["out"] + ".partial")
    partial.parent.mkdir(parents=True, exist_ok=True)
    partial.write_text(json.dumps(told, ensure_ascii=False) + "\n", "utf-8")
    partial.rename(job["out"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("jobs", type=Path)
    parser.add_argument("--side", choices=SIDES, required=True)
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    import torch

    import regard
    import regard.api

    here = Path(regard.__file__).resolve()
    assert here.is_relative_to(options.tree.resolve() / "src"), (
        f"regard is that of {here}, not {options.tree}"
    )
    torch.set_num_threads(options.threads)
    side = SIDES[options.side]()
    for job in json.loads(options.jobs.read_text("utf-8")):
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            status = 1
            try:
                work(job, side)
                status = 0
            finally:
                os._exit(status)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
