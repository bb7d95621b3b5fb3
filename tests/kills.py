"""A trainer that is killed: at random moments, and at every named moment of a save, until it is done.

    python tests/kills.py        # what `make soak` runs

Every attempt is a process of its own, forked after the imports so that hundreds fit in minutes, and ended
by a signal. At the end the state must be that of the run nobody disturbed, to the bit; no kill may cost more
than one checkpoint interval, and SIGTERM nothing; and the batches must have come in the same order. Then the
newest checkpoint is damaged, a bit or a cut at a time: each must be seen, named, and got around.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # the first optimiser loads it: here once, not for seconds in every child

from regard import durable
from regard.recipe import Recipe
from regard.runs.prepare import complete, is_finished, prepare
from regard.training import checkpoint, loop
from regard.training.stopping import Interrupted, Stop
from small_runs import SIZES, write_pictures, write_recipe

SAVE_EVERY = 3
STEPS = 40
TRANSLATE = """
kind = "translate"
max_length = 16
tokenizer = {{ kind = "word", vocab_size = 60, min_frequency = 1 }}
[data]
train = "{folder}/train.tsv"
valid = "{folder}/valid.tsv"
columns = {{ source = 2, target = 1 }}
"""
RECOMMEND = """
kind = "recommend"
objective = "masked"
loss = {{ kind = "sampled_softmax", negatives = 5 }}
max_length = 7
[data]
train = "{folder}/ratings.csv"
"""
PICTURES = """
kind = "classify"
[fields.image]
shift = 1
flip = true
mixup = 0.4
[data]
train = "{folder}/pictures.npz"
[model]
kind = "classifier"
[model.encoder]
"""
SMALL = "d_model = 8\nn_heads = 2\nd_ff = 12\nn_layers = 1"
MODELS = {
    "transformer": f'{TRANSLATE}[model]\nkind = "transformer"\n{SIZES}',
    "rnn": f'{TRANSLATE}[model]\nkind = "rnn_seq2seq"\nd_embed = 7\nd_hidden = 6\ndropout = 0.1',
    "vit": f'{PICTURES}kind = "vit"\nstem = "conv"\nstem_depth = 2\nd_stem = 3\n{SMALL}',
    "bert4rec": f'{RECOMMEND}[model]\nkind = "bert4rec"\n{SMALL}',
}
RECIPE = """
run = "{{folder}}/run"
[task]
{model}
[train]
max_steps = {steps}
eval_every = 10
save_every = {save_every}
batch_tokens = 50
accumulate = 2
average = 2
schedule = "cosine"
warmup = 5
threads = 1
"""


@dataclass
class Trial:
    """A run in a folder of its own, and what happened to it."""

    folder: Path
    recipe: Recipe
    kills: int = 0
    redone: list[int] = field(default_factory=list)
    """Steps that each kill cost."""

    @classmethod
    def of(cls, folder: Path, model: str) -> "Trial":
        folder.mkdir(parents=True)
        write_pictures(folder / "pictures.npz", 40)
        text = RECIPE.format(model=MODELS[model], steps=STEPS, save_every=SAVE_EVERY)
        return cls(folder, Recipe.read(write_recipe(folder, text)))

    def attempt(
        self, arm: Callable[[], None], seconds: float | None = None, by: signal.Signals = signal.SIGKILL
    ) -> bool:
        """Train in a child that arms itself, stopped after so many seconds if need be; True when done."""
        before = self.steps()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            self._train(arm)
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, by)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, -by, 128 + by, -signal.SIGKILL), f"the trainer failed with {code}"
        self.kills += code != 0
        if before and len(after := self.steps()) > len(before):
            self.redone.append(before[-1][0] + 1 - after[len(before)][0])
        if finished := is_finished(self.recipe):
            complete(self.folder / "run")  # as the same command does when it is given again
        return finished

    def _train(self, arm: Callable[[], None]) -> None:
        arm()
        journal = os.open(self.folder / "steps", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        update = loop.update

        def noting(training: Any, load: Any, step: int, lr: float) -> Any:
            result = update(training, load, step, lr)
            os.write(journal, f"{json.dumps([step, load.indices])}\n".encode())
            return result

        loop.update = noting
        stop = Stop()
        try:
            with stop.listening(), prepare(self.recipe, stop=stop) as run:
                for _ in run.events():
                    pass
        except Interrupted as stopped:
            os._exit(128 + stopped.signum)
        except BaseException as error:  # forked: nothing of the parent may run in the child
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)

    def steps(self) -> list[tuple[int, list[int]]]:
        """Every step that was taken and its batch, in order, repetitions included."""
        path = self.folder / "steps"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(step, batch) for step, batch in map(json.loads, lines)]

    def batches(self) -> list[list[int]]:
        """The batch of each step; the same one every time it was taken."""
        taken: dict[int, list[int]] = {}
        for step, batch in self.steps():
            assert taken.setdefault(step, batch) == batch
        return [taken[step] for step in range(1, STEPS + 1)]

    def state(self) -> str:
        """One hash of weights, moments, cursor, and the model that came out."""
        last = checkpoint.folder_of(self.folder / "run" / "checkpoints", STEPS)
        progress = json.loads((last / "state.json").read_text())["progress"]
        del progress["seconds"]
        files = [last / "model.safetensors", last / "optimizer.safetensors"]
        files.append(self.folder / "run" / "model" / "model.safetensors")
        return hashlib.sha256(
            json.dumps([progress, *(durable.sha256(file) for file in files)]).encode()
        ).hexdigest()

    def check(self, undisturbed: "Trial") -> None:
        assert self.state() == undisturbed.state()
        assert self.batches() == undisturbed.batches()
        assert max(self.redone, default=0) <= SAVE_EVERY, self.redone
        hidden = list((self.folder / "run").rglob(".*"))
        assert not hidden, f"left behind: {hidden}"


def unarmed() -> None:
    pass


def at(moment: str, occurrence: int, by: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """Stopped at the n-th time the save code comes to this moment."""
    left = occurrence

    def reached(name: str) -> None:
        nonlocal left
        left -= name == moment
        if name == moment and left == 0:
            os.kill(os.getpid(), by)

    def arm() -> None:
        durable.reached = reached

    return arm


def moments(folder: Path, model: str) -> dict[str, int]:
    """Every named moment of an undisturbed run, and how often it came."""
    trial, counted = Trial.of(folder, model), folder / "moments"

    def noted(name: str) -> None:
        with counted.open("a") as file:
            file.write(f"{name}\n")

    def arm() -> None:
        durable.reached = noted

    assert trial.attempt(arm)
    names = counted.read_text().splitlines()
    return {name: names.count(name) for name in dict.fromkeys(names)}


def random_stops(folder: Path, model: str, n_kills: int, by: signal.Signals = signal.SIGKILL) -> Trial:
    """Runs stopped at random times, one after another, until so many stops have happened."""
    rng = random.Random(model)
    undisturbed = Trial.of(folder / "undisturbed", model)
    began = time.perf_counter()
    assert undisturbed.attempt(unarmed)
    duration = time.perf_counter() - began
    total = Trial(folder, undisturbed.recipe)
    numbers = count()
    while total.kills < n_kills:
        trial = Trial.of(folder / f"killed-{next(numbers)}", model)
        while not trial.attempt(unarmed, rng.uniform(0.02, 0.5) * duration, by):
            pass
        trial.check(undisturbed)
        total.kills += trial.kills
        total.redone += trial.redone
    return total


def stops_inside_saves(folder: Path, model: str, each: int, by: signal.Signals = signal.SIGKILL) -> int:
    """Stopped at every named moment, `each` times at one of its occurrences; then the run is finished."""
    rng = random.Random(model)
    known = moments(folder / "undisturbed", model)
    undisturbed = Trial(folder / "undisturbed", Recipe.read(folder / "undisturbed" / "recipe.toml"))
    for moment, times in known.items():
        for number in range(each):
            trial = Trial.of(folder / f"{moment.replace(' ', '-')}-{number}", model)
            done = trial.attempt(at(moment, rng.randint(1, times), by), by=by)
            assert trial.kills == 1, f"{moment} was never reached"
            assert done or trial.attempt(unarmed)
            trial.check(undisturbed)
    return len(known) * each


def damages(folder: Path, model: str, n_flips: int, n_cuts: int, trained_on: int) -> None:
    """Flip a bit or cut a file of the newest checkpoint; some of the runs are trained to their end."""
    rng = random.Random(model)
    undisturbed = Trial.of(folder / "undisturbed", model)
    assert undisturbed.attempt(unarmed)
    begun = Trial.of(folder / "begun", model)
    begun.attempt(at("at the end", 8))
    root = begun.folder / "run" / "checkpoints"
    *_, before, newest = checkpoint.saved_steps(root)
    shutil.copytree(begun.folder, folder / "copy")
    for number in range(n_flips + n_cuts):
        path = rng.choice(sorted(checkpoint.folder_of(root, newest).iterdir()))
        whole = bytearray(path.read_bytes())
        if number < n_flips:
            bit = rng.randrange(8 * len(whole))
            whole[bit // 8] ^= 1 << bit % 8
        else:
            del whole[rng.randrange(len(whole)) :]
        path.write_bytes(whole)
        if number % ((n_flips + n_cuts) // trained_on) == 0:
            assert begun.attempt(unarmed)
            assert begun.state() == undisturbed.state()
        else:
            step, [aside] = checkpoint.newest_intact(root, [before, newest])
            assert step == before
            assert path.name in aside.fault or path.name == durable.MANIFEST
        shutil.rmtree(begun.folder)
        shutil.copytree(folder / "copy", begun.folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="kills at random moments")
    parser.add_argument("--each", type=int, default=20, help="kills at each named moment of a save")
    parser.add_argument("--terms", type=int, default=100, help="SIGTERMs at random moments")
    parser.add_argument("--damages", type=int, default=1000, help="flipped bits, and as many cuts")
    options = parser.parse_args()
    torch.set_num_threads(1)
    share = len(MODELS)
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            began, home = time.perf_counter(), Path(folder) / model
            kills = random_stops(home / "kills", model, options.kills // share)
            terms = random_stops(home / "terms", model, options.terms // share, signal.SIGTERM)
            assert max(terms.redone) == 0, "SIGTERM saves first"
            inside = stops_inside_saves(home / "inside", model, options.each)
            asked = stops_inside_saves(home / "asked", model, options.each, signal.SIGTERM)
            damages(home / "damages", model, options.damages // share, options.damages // share, 20)
            print(
                f"{model}: {kills.kills} kills at random moments ({max(kills.redone)} of {SAVE_EVERY} steps "
                f"redone at most), {terms.kills} SIGTERMs (none redone), {inside} kills and {asked} "
                f"SIGTERMs inside saves, {2 * (options.damages // share)} damages seen; "
                f"every end state equal to the bit ({time.perf_counter() - began:.0f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()
