"""All that `make same-as` asks of regard, once for each side, so that a change of the API is mended here.

`Old` speaks to the revision that is compared with and stays as it is; what it says is part of the key of the
cached baseline. `New` is the work tree: override here what has another name there. Nothing of regard is
imported before a method is called, so that the caller can choose the tree.
"""

import json
import math
import signal
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

ANSWERS = (
    *("text", "ids", "score", "steps", "others", "probability", "probabilities", "labels", "tags", "places"),
    *("spans", "start", "end", "windows", "window", "ends", "blanks", "candidates", "cut"),
)
"""What answers may have, by the names that the facts go by."""


class Old:
    """The API of the revision that the work tree is compared with: it is not to be changed with the tree."""

    homes: ClassVar[dict[str, tuple[str, ...]]] = {
        "prepare": (".run",),
        "Step": (".training.events",),
        "Stop": (".training.stopping",),
        "Interrupted": (".training.stopping",),
        "import_folder": (".importing",),
        "app": (".cli",),
    }
    """Where that is which the package does not hand out; of several modules, the first that is there."""

    def fetched(self, name: str) -> Any:
        """What a module of regard holds."""
        for home in self.homes[name]:
            if find_spec(f"regard{home.rpartition('.')[0]}") and find_spec(f"regard{home}"):
                return getattr(import_module(f"regard{home}"), name)
        raise ImportError(
            f"{name} is in none of {self.homes[name]}; say in {type(self).__name__} where it is"
        )

    def train(self, recipe: dict[str, Any]) -> Any:
        import regard

        return regard.train(regard.Recipe.parse(recipe), quiet=True)

    def train_until(self, recipe: dict[str, Any], step: int) -> None:
        """Train, and stop after this step as if a signal had come."""
        import regard

        stop = self.fetched("Stop")()
        try:
            with self.fetched("prepare")(regard.Recipe.parse(recipe), stop=stop) as run:
                for event in run.events():
                    if isinstance(event, self.fetched("Step")) and event.step == step:
                        self.signal(stop)
        except self.fetched("Interrupted"):
            return
        raise AssertionError(f"the training did not stop after step {step}")

    def signal(self, stop: Any) -> None:
        """Tell a training that a signal has come."""
        stop.heard = signal.SIGINT

    def load(self, *runs: Path, **settings: Any) -> Any:
        import regard

        return regard.load(*runs, device="cpu", **settings)

    def predict(self, trained: Any, asked: list[Any], search: dict[str, Any]) -> list[Any]:
        return list(trained.predict(asked, **search))

    def attribute(self, answer: Any, name: str) -> Any:
        """What an answer has under a name of `ANSWERS`; None where it has nothing."""
        return getattr(answer, name, None)

    def said(self, answer: Any) -> Any:
        """The answer as JSON tells it."""
        return answer.to_json()

    def follow(self, trained: Any, asked: Any) -> list[str]:
        """What is heard of an answer while it is searched for."""
        return list(trained.follow(asked))

    def beams(self, trained: Any, asked: Any) -> list[dict[str, Any]]:
        """Every beginning that a search considered."""
        found: list[dict[str, Any]] = trained.beams(asked).to_json()["beginnings"]
        return found

    def embed(self, run: Path, texts: list[str]) -> Any:
        """A vector for each text."""
        import regard

        return regard.Embedder.load(run, device="cpu")(texts)

    def relate(self, run: Path, tagger: Path, texts: list[str]) -> list[Any]:
        """Entities and relations of raw texts."""
        import regard

        related = regard.Relations.load(run, tagger, device="cpu")
        return [found.to_json() for found in related.stream(texts)]

    def export(self, trained: Any, folder: Path, to: str, asked: list[Any]) -> dict[str, Any]:
        """Write a folder for another engine; how far the two agree."""
        found = trained.export(folder, to, asked)
        names = ("engine", "n_inputs", "n_compared", "identical", "difference", "notes")
        return {name: getattr(found, name) for name in names}

    def import_(self, folder: Path, out: Path) -> str | None:
        """Make a folder of Hugging Face one of regard's; the task it answers, if any."""
        task: str | None = self.fetched("import_folder")(folder, out)
        return task

    def command(self, *arguments: str) -> list[str]:
        """The command line of regard."""
        return [sys.executable, "-m", "regard", *arguments]

    def evaluate(
        self, trained: Any, files: list[str], columns: dict[str, Any] | None, search: dict[str, Any]
    ) -> dict[str, Any]:
        return self.scored(trained.evaluate(files, columns, **search))

    def scored(self, found: Any) -> dict[str, Any]:
        """All that an evaluation tells."""
        return {
            "metrics": found.metrics,
            "by kind": found.by_kind,
            "intervals": found.intervals,
            "signatures": found.signatures,
            "examples": found.n_examples,
        }

    def compare(self, one: Any, other: Any, files: list[str], columns: Any) -> dict[str, Any]:
        """How much better one model is than another, and whether that may be chance."""
        found = one.evaluate(files, columns).against(other.evaluate(files, columns))
        return {name: list(vars(difference).values()) for name, difference in found.items()}

    def call(self, *arguments: str) -> str:
        """What the command line prints."""
        from typer.testing import CliRunner

        found = CliRunner().invoke(self.fetched("app"), arguments)
        assert found.exit_code == 0, f"regard {' '.join(arguments)}: {found.output}"
        return found.output

    def drafted(self, files: list[str]) -> dict[str, Any]:
        """The recipe that is written for files."""
        self.call("init", *files, "--out", "drafted.toml")
        return tomllib.loads(Path("drafted.toml").read_text("utf-8"))

    def checked(self) -> list[str]:
        """What the doctor says of it, but for what it measures by the clock."""
        lines = self.call("check", "drafted.toml").splitlines()
        return [line for line in lines if not line.startswith(("memory", "time"))]

    def explain(self, trained: Any, asked: Any) -> dict[str, Any]:
        """Maps, the place of the main one among them, the output, the trust: its sentences and its score."""
        found = trained.explain(asked)
        maps = [
            {
                "title": one.title,
                "kinds": [one.holds, one.rows.name, one.columns.name],
                "rows": one.rows.labels,
                "columns": one.columns.labels,
                "weights": one.weights_HQK,
            }
            for one in found.maps
        ]
        trust = found.trust and [[found.trust.sentence, found.trust.in_chinese], found.trust.score]
        main = [one.site for one in found.maps].index(found.main)
        return {"maps": maps, "output": found.output, "trust": trust, "main": main}

    def tensors(self, trained: Any) -> dict[str, Any]:
        """The model's weights."""
        return dict(trained.model.state_dict())

    def checkpoints(self, run: Path) -> Iterator[Path]:
        """The files of tensors that a training could go on with: weights, moments, averages."""
        yield from sorted((run / "checkpoints").rglob("*.safetensors"))

    def journal(self, run: Path) -> list[dict[str, Any]]:
        """What the training said, each entry with its `event`: step, evaluated, skipped …"""
        lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def vocabulary(self, run: Path) -> Iterator[Any]:
        """What the data decided (pieces, labels, tags), as the JSON that is kept of it, without names."""
        for path in sorted((run / "task").rglob("*.json")):
            yield json.loads(path.read_text("utf-8"))

    def scores(self, run: Path) -> dict[str, Any]:
        """What the run measured at its end."""
        told = json.loads((run / "model" / "metrics.json").read_text("utf-8"))
        return {name: told[name] for name in ("scores", "intervals", "signatures")}


class New(Old):
    """The work tree; what it calls otherwise than `Old` is overridden here."""

    homes: ClassVar[dict[str, tuple[str, ...]]] = Old.homes | {
        "prepare": (".runs.prepare", ".run"),
        "import_folder": (".interop.importing", ".importing"),
    }

    def signal(self, stop: Any) -> None:
        stop.received = stop.heard = signal.SIGINT  # it had the second name before

    def beams(self, trained: Any, asked: Any) -> list[dict[str, Any]]:
        return [node | {"piece": node.pop("token")} for node in trained.beams(asked).to_json()["nodes"]]

    def attribute(self, answer: Any, name: str) -> Any:
        """Spans were dictionaries, and an empty list where tags mark none; candidates were tuples; a missing
        score was not a number.
        """
        value = getattr(answer, name, None)
        if name == "spans" and hasattr(answer, "tags"):
            return [span.model_dump() for span in value or ()]
        if name == "candidates" and value is not None:
            return [(one.id, one.text, one.probability) for one in value]
        if name == "score" and value is None and hasattr(answer, "steps"):
            return math.nan
        return value

    def said(self, answer: Any) -> Any:
        """A blank is a plain model of pydantic."""
        return answer.to_json() if hasattr(answer, "to_json") else answer.model_dump(mode="json")

    def vocabulary(self, run: Path) -> Iterator[Any]:
        """A tagger's words and labels were in one file."""
        folder = run / "task"
        told = {path: json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob("*.json"))}
        if folder / "words.json" in told:
            told[folder / "words.json"]["tags"] = told.pop(folder / "labels.json")
        yield from told.values()

    def journal(self, run: Path) -> list[dict[str, Any]]:
        """Checkpoints have an entry of their own since then."""
        return [entry for entry in super().journal(run) if entry["event"] != "saved"]


SIDES: dict[str, type[Old]] = {"old": Old, "new": New}
