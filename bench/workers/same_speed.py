"""Measures one rate of one side's regard for `make same-speed`; the answer is the last line it prints.

    python bench/workers/same_speed.py WHAT --side old|new --tree CHECKOUT --folder FOLDER --recipes FILE

FOLDER holds the data, and the run that is asked, once `prepare` has made it. Rates are of tokens, texts,
requests or starts a second: more is better.
"""

import argparse
import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from same_server import Server, asked
from same_sides import SIDES, Old

N_WORDS, N_TEXTS, SKIPPED = 3000, 256, 5
CLIENTS = 4


def sentences(n: int, seed: str) -> list[str]:
    """Made-up words, of which the first are the frequent ones."""
    rng = random.Random(seed)
    weights = [1 / (rank + 10) for rank in range(N_WORDS)]
    return [
        " ".join(f"w{number}" for number in rng.choices(range(N_WORDS), weights, k=rng.randint(5, 30)))
        for _ in range(n)
    ]


def write_data(folder: Path) -> None:
    """Sentences to be turned round, and sentences whose first word decides their label."""
    for split, n in (("train", 6000), ("valid", 20), ("test", N_TEXTS)):
        texts = sentences(n, split)
        turned = "".join(f"{text}\t{' '.join(text.split()[::-1])}\n" for text in texts)
        (folder / f"pairs.{split}.tsv").write_text(turned, "utf-8")
        labelled = "".join(f"{text}\t{len(text.split()[0]) % 3}\n" for text in texts)
        (folder / f"labelled.{split}.tsv").write_text(labelled, "utf-8")


class Measures:
    """What can be measured; each method gives a rate."""

    def __init__(self, side: Old, recipes: dict[str, Any], seconds: float) -> None:
        self.side, self.recipes, self.seconds = side, recipes, seconds
        self.run = Path("asked")
        self.texts = [line.split("\t")[0] for line in Path("pairs.test.tsv").read_text("utf-8").splitlines()]

    def prepare(self) -> float:
        """Train the model that is asked; what counts is that it is there."""
        began = time.perf_counter()
        self.side.train(self.recipes["asked"])
        return 1 / (time.perf_counter() - began)

    def training(self, name: str) -> float:
        """What is learnt from a second, after the first steps, in a run that is new every time."""
        run = f"{name}-{os.getpid()}"
        recipe = self.recipes[name] | {"run": run}
        recipe["train"]["max_minutes"] = self.seconds / 60
        self.side.train(recipe)
        steps = [entry for entry in self.side.journal(Path(run)) if entry["event"] == "step"][SKIPPED:]
        first, *rest = steps
        return float(sum(step["tokens"] for step in rest) / (rest[-1]["seconds"] - first["seconds"]))

    def decoding(self, beam: int) -> float:
        trained = self.side.load(self.run)
        self.side.predict(trained, self.texts[:32], {"beam": beam})
        n, began = 0, time.perf_counter()
        while (took := time.perf_counter() - began) < self.seconds / 2:
            self.side.predict(trained, self.texts[:64], {"beam": beam})
            n += 64
        return n / took

    def serving(self) -> float:
        """Requests that a few clients have answered."""
        counts, until = [0] * CLIENTS, 0.0

        def client(number: int) -> None:
            connection = server.connection()
            while time.perf_counter() < until:
                text = self.texts[(number * 61 + counts[number]) % len(self.texts)]
                asked(connection, "/v1/translate", {"text": text})
                counts[number] += 1
            connection.close()

        with Server(self.side.command("serve", str(self.run), "--port", "0")) as server:
            for text in self.texts[:8]:
                server.ask("/v1/translate", {"text": text})
            threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
            began = time.perf_counter()
            until = began + self.seconds / 2
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return sum(counts) / (time.perf_counter() - began)

    def starting(self, *arguments: str) -> float:
        """Of three starts the one in the middle; one before them fills the caches."""
        took = []
        for _ in range(4):
            began = time.perf_counter()
            subprocess.run(self.side.command(*arguments), check=True, stdout=subprocess.DEVNULL)
            took.append(time.perf_counter() - began)
        return 1 / median(took[1:])


MEASURES: dict[str, Callable[[Measures], float]] = {
    "prepare": Measures.prepare,
    "train a translator": lambda own: own.training("translator"),
    "train a classifier": lambda own: own.training("classifier"),
    "decode greedily": lambda own: own.decoding(1),
    "decode with beam 4": lambda own: own.decoding(4),
    "serve": Measures.serving,
    "start: --help": lambda own: own.starting("--help"),
    "start: predict": lambda own: own.starting("predict", str(own.run), own.texts[0]),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--side", choices=SIDES, required=True)
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--recipes", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()

    import regard

    here = Path(regard.__file__).resolve()
    assert here.is_relative_to(options.tree.resolve() / "src"), (
        f"regard is that of {here}, not {options.tree}"
    )
    os.chdir(options.folder)
    if not Path("pairs.test.tsv").exists():
        write_data(Path())
    recipes = json.loads(options.recipes.read_text("utf-8"))
    rate = MEASURES[options.what](Measures(SIDES[options.side](), recipes, options.seconds))
    print(json.dumps({"rate": rate}), flush=True)


if __name__ == "__main__":
    main()
