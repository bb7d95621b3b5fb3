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
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import same_data
import same_folders
from same_server import Server
from same_sides import ANSWERS, SIDES, Old

Facts = dict[str, dict[str, Any]]
JOURNAL = (
    *("step", "epoch", "loss", "grad_norm", "lr", "tokens", "metrics", "best", "samples"),
    *("place", "rows", "total", "from_step", "excluded", "parts", "best_step"),
)
"""What is compared of the events that have it."""
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
PARTS = ("steps", "weights", "answers", "scores", "maps")
SPLITS = ("train", "valid", "test")
EVENTS = {"step": "taken", "evaluated": "validated", "finished": "ended"}
"""What they are called in the facts, where it is not their own name."""


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
        self.words: dict[str, list[str]] = {}
        """Prose, by what it is about: it may be written otherwise, and only its numbers must stay."""
        self.texts = [one if isinstance(one, str) else next(iter(one.values())) for one in self.asked]
        """What is asked, where only one text can be."""

    def facts(self) -> Facts:
        same_data.write(Path(), self.job["corpora"])
        for folder in self.job["folders"]:
            same_folders.FOLDERS[folder](Path(folder))
        if self.job["drafts"]:
            return {part: {} for part in PARTS} | {"answers": self.drafted(), "words": self.words}
        for recipe in self.job["before"]:
            self.side.train(recipe)
        trained = self.side.train(self.recipe)
        facts: Facts = {
            "steps": self.steps(self.run),
            "weights": {
                "final": of_tensors(self.side.tensors(trained).values()),
                "checkpoints": self.checkpoints(self.run),
                "vocabulary": sorted(
                    sha(json.dumps(told, sort_keys=True).encode()) for told in self.side.vocabulary(self.run)
                ),
            },
            "answers": {
                name: self.answers(trained, self.asked, search)
                for name, search in ({"default": {}} | self.job["searches"]).items()
            },
            "scores": {"of the run": self.scores(self.side.scores(self.run))},
            "maps": {
                f"of input {place}": self.explanation(trained, asked)
                for place, asked in enumerate(self.job["explained"], 1)
            },
        }
        for name, search in self.job["evaluated"].items():
            found = self.side.evaluate(trained, self.job["files"], self.job["columns"], search)
            facts["scores"][name] = self.scores(found)
        for extra in self.job["also"]:
            getattr(self, extra)(trained, facts)
        return facts | {"words": self.words}

    def scores(self, found: dict[str, Any]) -> dict[str, Any]:
        """With how they were computed told by the names of the metrics and the numbers there."""
        told = {
            name: own if "|" in own else self.prose("signatures", own)  # sacrebleu's are no prose
            for name, own in found["signatures"].items()
        }
        kept: dict[str, Any] = plain(found | {"signatures": told})
        return kept

    def prose(self, about: str, text: str | None) -> list[str]:
        """The numbers in a text, which count; the text itself is kept beside the facts."""
        if text is None:
            return []
        self.words.setdefault(about, []).append(text)
        return NUMBER.findall(text)

    def drafted(self) -> dict[str, Any]:
        """What is proposed for the files of the recipe, and found in them."""
        files = [file for split in SPLITS for file in self.recipe["data"].get(split, ())]
        drafted = plain(self.side.drafted(files))
        return {"drafted": drafted, "checked": [self.prose("checked", line) for line in self.side.checked()]}

    def steps(self, run: Path) -> dict[str, Any]:
        """What the journal tells, but for times and files."""
        told: dict[str, Any] = {}
        for entry in self.side.journal(run):
            kept = {name: entry[name] for name in JOURNAL if name in entry}
            kept |= {name: self.prose(name, entry[name]) for name in ("chosen", "reason") if name in entry}
            told.setdefault(EVENTS.get(entry["event"], entry["event"]), []).append(plain(kept))
        return told

    def checkpoints(self, run: Path) -> list[str]:
        from safetensors.torch import load_file

        files = self.side.checkpoints(run)
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
        maps = [
            {
                "weights": of_array(one["weights"]),
                "title": self.prose("titles", one["title"]),
                "rows": one["rows"],
                "columns": one["columns"],
            }
            for one in found["maps"]
        ]
        for one in found["maps"]:
            self.prose("what maps hold and are between", " ".join(one["kinds"]))
        sentences, score = found["trust"] or ((), None)
        return {
            "weights": sorted(one["weights"] for one in maps),
            "legends": plain(sorted(maps, key=lambda one: one["weights"])),
            "main": maps[found["main"]]["weights"],
            "output": found["output"],
            "trust": [plain(score), *(self.prose("trust", sentence) for sentence in sentences)],
        }

    # What cases may do beside that; each adds to the facts.

    def resumed(self, trained: Any, facts: Facts) -> None:
        """The same training in two parts, which has to end with the same weights."""
        recipe, steps = self.recipe | {"run": f"{self.run}-parted"}, self.job["stop_after"]
        self.side.train_until(recipe, steps)
        stopped = self.steps(Path(recipe["run"]))["taken"]
        assert len(stopped) == steps, f"stopped after {len(stopped)} steps"
        tensors = of_tensors(self.side.tensors(self.side.train(recipe)).values())
        assert tensors == facts["weights"]["final"], "parted in two, the training ended with other weights"
        facts["weights"]["resumed"] = tensors
        facts["weights"]["checkpoints, resumed"] = self.checkpoints(Path(recipe["run"]))
        for what, told in self.steps(Path(recipe["run"])).items():
            facts["steps"][f"{what}, resumed"] = told

    def followed(self, trained: Any, facts: Facts) -> None:
        facts["answers"]["followed"] = [self.side.follow(trained, one) for one in self.asked[:2]]

    def searched(self, trained: Any, facts: Facts) -> None:
        """The trees of beams."""
        facts["answers"]["beams"] = [plain(self.side.beams(trained, one)) for one in self.texts[2:4]]

    def embedded(self, trained: Any, facts: Facts) -> None:
        facts["answers"]["embedded"] = list(map(of_array, self.side.embed(self.run, self.texts)))

    def together(self, trained: Any, facts: Facts) -> None:
        """Answers of this model and the one before it, as one."""
        both = self.side.load(self.run, Path("before"))
        facts["answers"]["together"] = self.answers(both, self.asked, {})
        found = self.side.evaluate(both, self.job["files"], self.job["columns"], {})
        facts["scores"]["together"] = self.scores(found)

    def compared(self, trained: Any, facts: Facts) -> None:
        """This model and the one before it."""
        other = self.side.load(Path("before"))
        found = self.side.compare(trained, other, self.job["files"], self.job["columns"])
        facts["scores"]["compared"] = plain(found)

    def related(self, trained: Any, facts: Facts) -> None:
        """Raw texts, whose entities the model before finds."""
        texts = [" ".join(row["words"]) for row in same_data.rows_of("tagged", "test")][1:7]
        found = self.side.relate(self.run, Path("before"), texts)
        facts["answers"]["related"] = plain(found)

    def ct2(self, trained: Any, facts: Facts) -> None:
        """Answers of CTranslate2."""
        other = self.side.load(self.run, engine="ct2")
        facts["answers"]["of CTranslate2"] = self.answers(other, self.asked, {"scores": False})

    def to_hf(self, trained: Any, facts: Facts) -> None:
        """To Hugging Face and back."""
        from safetensors.torch import load_file

        facts["scores"]["exported to hf"] = self.exported(trained, "hf")
        facts["weights"]["exported to hf"] = of_tensors(load_file("hf/model.safetensors").values())
        facts["answers"]["hf and back"] = self.imported_from(Path("hf"))

    def to_onnx(self, trained: Any, facts: Facts) -> None:
        import onnx
        from onnx import numpy_helper

        facts["scores"]["exported to onnx"] = self.exported(trained, "onnx")
        graphs = [onnx.load(path) for path in sorted(Path("onnx").rglob("*.onnx"))]
        arrays = (numpy_helper.to_array(one) for graph in graphs for one in graph.graph.initializer)
        facts["weights"]["exported to onnx"] = sorted(map(of_array, arrays))

    def exported(self, trained: Any, to: str) -> dict[str, Any]:
        found = self.side.export(trained, Path(to), to, self.asked)
        notes = [self.prose("notes", note) for note in found.pop("notes")]
        kept: dict[str, Any] = plain(
            found | {"engine": self.prose("engines", found["engine"]), "notes": notes}
        )
        return kept

    def imported(self, trained: Any, facts: Facts) -> None:
        """What the folders of Hugging Face answer by themselves."""
        for folder in self.job["folders"]:
            facts["answers"][f"{folder}, imported"] = self.imported_from(Path(folder))

    def imported_from(self, folder: Path) -> list[Any]:
        out = Path(f"{folder}-imported")
        task = self.side.import_(folder, out)
        asked = same_data.asked_with_blanks() if task == "pretrain" else self.asked
        return [task, *self.answers(self.side.load(out), asked, {})]

    def served(self, trained: Any, facts: Facts) -> None:
        """What a server says to each of the first questions, and to some at once."""
        with Server(self.side.command("serve", str(self.run), "--port", "0")) as server:
            path = f"/v1/{self.recipe['task']['kind']}"
            given = [{"text": text} for text in [*self.texts[:3], self.texts[3:6]]]
            answers = [server.ask(path, one)["answers"] for one in given]
        facts["answers"]["served"] = plain(answers)


def work(job: dict[str, Any], side: Old) -> None:
    """Run the job where nothing else is; a failure is a fact too, of which the caller makes an error."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        told: dict[str, Any]
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
