"""A run: from a recipe to a folder that holds everything about it.

runs/NAME/recipe.json     the recipe as it was understood
          identity.json   what the result depends on, to be compared when the run goes on
          metrics.jsonl   a line every few steps, and one per validation
          checkpoints/    where training can go on from
          task/           vocabulary and labels
          model/          the finished model: see store.py
          lock            who is training, while somebody is
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Self

import torch

from regard import durable, identity
from regard.data.source import Row, read_rows
from regard.errors import DataError, RecipeError, RunError
from regard.lock import NAME as LOCK
from regard.lock import locked
from regard.machine import Machine
from regard.models.outline import outline
from regard.recipe import Recipe
from regard.store import save_model
from regard.tasks import TASKS, AnyTask
from regard.training.evaluate import evaluate
from regard.training.events import Event, Finished, Prepared, Scoring, SetAside
from regard.training.journal import Journal
from regard.training.loop import run
from regard.training.ranks import Ranks
from regard.training.state import Training
from regard.training.stopping import Stop

ADAM = 4
"""Weights, gradients and two moments: what every parameter is held as in training."""
HELD_OUT = 20
"""Without validation data, every 20th training row is held out."""


@dataclass
class Run:
    """A recipe about to be trained, its data read and its model built."""

    recipe: Recipe
    folder: Path
    training: Training
    test: list[Any] | None
    n_left_out: int
    set_aside: list[SetAside] = field(default_factory=list)
    """Damaged checkpoints found on the way to one that is whole."""
    held: ExitStack = field(default_factory=ExitStack)
    """The folder's lock."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.held.close()

    def events(self) -> Iterator[Event]:
        """Train; write the journal; at the end score, and save the model folder."""
        plan, training = self.recipe.train, self.training
        if not training.ranks.first:  # rank 0 speaks and writes for all
            yield from run(training)
            training.ranks.told()
            return
        journal = Journal(self.folder / "metrics.jsonl", plan.log_every, training.progress.step)
        yield Prepared(
            run=self.folder,
            n_train=len(training.train),
            n_left_out=self.n_left_out,
            n_valid=len(training.valid),
            n_parameters=sum(parameter.numel() for parameter in training.model.parameters()),
            model=str(self.recipe.model),
            device=str(training.device),
            total_steps=training.total_steps,
            resumed_step=training.progress.step,
        )
        yield from self.set_aside
        for event in run(training):
            journal(event)
            if isinstance(event, Finished):
                if self.test is not None:
                    yield Scoring(event.step, "test")
                self.finish(event)
                training.ranks.told(True)  # the others may load it
            yield event

    def finish(self, event: Finished) -> None:
        """Score the test data, and write the model folder."""
        recipe, training = self.recipe, self.training
        scored = {"valid": event.metrics}
        if self.test is not None:
            scored["test"], _ = evaluate(
                training.task,
                training.model,
                self.test,
                training.device,
                thorough=True,
                batch_tokens=recipe.train.batch_tokens,
            )
        metrics = {
            "format_version": 1,
            "scores": scored,
            "signatures": event.signatures,
            "step": event.step,
            "minutes": round(event.seconds / 60, 2),
            "stopped_by": event.reason,
            "weights": event.chosen,
            "seed": recipe.seed,
        }
        save_model(self.folder / "model", training.task, recipe.task, training.model, recipe.model, metrics)


def prepare(
    recipe: Recipe,
    base: Path = Path(),
    *,
    fresh: bool = False,
    accept_changes: bool = False,
    stop: Stop | None = None,
    ranks: Ranks | None = None,
) -> Run:
    """Take the folder, read the data, learn the vocabulary, build the model; or go on where the run stands.

    `base` is where paths start; `fresh` sets a run that is there aside. Every split is read and encoded
    here: a fault in the test data must not wait for the end of training.
    """
    folder, ranks = base / recipe.run, ranks or Ranks()
    with ExitStack() as held:
        begun, accepted = True, []
        if ranks.first:
            if fresh:
                set_aside_run(folder)
            held.enter_context(locked(folder))
            begun = _begun(folder)
        device = pick_device(recipe.train.device)
        rows = _read(recipe, base)
        if not ranks.first:
            ranks.told()  # the vocabulary is on the disk
        elif begun:
            accepted = _compare(folder, recipe, base, accept_changes)
        kind: type[AnyTask] = TASKS[recipe.task.kind]
        task = kind.load(recipe.task, folder / "task") if begun else kind.fit(recipe.task, rows["train"])
        encoded = {split: task.encode(split_rows) for split, split_rows in rows.items()}
        train = [example for example in encoded["train"] if task.usable(example)]
        for split, examples in (("train", train), ("valid", encoded["valid"])):
            if not examples:
                files = getattr(recipe.data, split) or recipe.data.train
                remedy = (
                    "" if getattr(recipe.data, split) else f"; {HELD_OUT} rows are needed to hold one out"
                )
                raise DataError(f"{', '.join(files)}: no usable examples for {split}{remedy}")
        needed, held_here = least_memory(recipe, task), Machine.here().memory
        if needed > held_here:
            raise RecipeError(
                f"model: its weights alone need {needed / 1e9:.1f} GB in training, this machine has "
                f"{held_here / 1e9:.1f} GB; take smaller sizes"
            )
        if not begun:
            _create(folder, recipe, task, base)
        if ranks.first:
            ranks.told(True)
        training = assemble(recipe, task, train, encoded["valid"], folder, device, ranks)
        training.stop = stop or training.stop
        aside = training.resume()
        if accepted:
            _accept(folder, recipe, base, accepted, training.progress.step)
        n_left_out = len(encoded["train"]) - len(train)
        return Run(recipe, folder, training, encoded.get("test"), n_left_out, aside, held.pop_all())


def is_finished(recipe: Recipe, base: Path = Path()) -> bool:
    """Whether this very recipe has been trained to its end in its folder."""
    folder = base / recipe.run
    if not ((folder / "model" / "config.json").is_file() and (folder / identity.NAME).is_file()):
        return False
    known, _ = identity.read(folder)
    was = {key: value for key, value in known.items() if key.startswith("recipe.")}
    return not identity.changes(was, identity.of_recipe(recipe))


def set_aside_run(folder: Path) -> Path | None:
    """Give a run another name, so that its place is free; nothing is deleted."""
    if not folder.exists():
        return None
    with locked(folder):
        if not (folder / identity.NAME).is_file() and any(path.name != LOCK for path in folder.iterdir()):
            raise RunError(
                f"{folder}: is not a run of regard, so --fresh leaves it alone; choose another run=NAME"
            )
    place = next(
        place for n in count(1) if not (place := folder.with_name(f"{folder.name}.old-{n}")).exists()
    )
    folder.rename(place)
    return place


def _read(recipe: Recipe, base: Path) -> dict[str, list[Row]]:
    """The rows of each split; validation rows are held out of the training rows if there are no others."""
    data = recipe.data
    files = {"train": data.train, "valid": data.valid, "test": data.test}
    rows = {
        split: list(read_split(recipe, paths, base)) for split, paths in files.items() if paths is not None
    }
    return rows if "valid" in rows else {**rows, "valid": hold_out(rows["train"])}


def hold_out(train_rows: list[Row]) -> list[Row]:
    """Takes every 20th row out of the training rows, for validation."""
    held = train_rows[HELD_OUT - 1 :: HELD_OUT]
    del train_rows[HELD_OUT - 1 :: HELD_OUT]
    return held


def least_memory(recipe: Recipe, task: AnyTask) -> int:
    """Bytes that the parameters alone will need in training."""
    parameters = outline(recipe.model, task.dims).parameters()
    return sum(ADAM * parameter.numel() * parameter.element_size() for parameter in parameters)


def assemble(
    recipe: Recipe,
    task: AnyTask,
    train: Sequence[Any],
    valid: Sequence[Any],
    folder: Path,
    device: torch.device,
    ranks: Ranks | None = None,
) -> Training:
    """The recipe's model, new, with what it will be trained on; nothing is written yet."""
    if recipe.train.threads is not None:
        torch.set_num_threads(recipe.train.threads)
    torch.manual_seed(recipe.seed)
    model = recipe.model.build(task.dims).to(device)
    return Training(
        task,
        model,
        train,
        valid,
        recipe.train,
        folder / "checkpoints",
        recipe.seed,
        device,
        d_model=recipe.model.d_model,
        ranks=ranks or Ranks(),
    )


def read_split(recipe: Recipe, files: Sequence[str], base: Path) -> Iterator[Row]:
    return read_rows(files, recipe.columns(), encoding=recipe.data.encoding, base=base)


def pick_device(name: str) -> torch.device:
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        if torch.device(name).type == "meta":
            raise RuntimeError("a device without memory")
        torch.empty(0, device=name)
        return torch.device(name)
    except (RuntimeError, AssertionError):
        raise RecipeError(f"train.device: {name!r} is not available here; use auto or cpu") from None


def _begun(folder: Path) -> bool:
    """Whether a run stands here that can go on; a folder with anything else in it is not ours to fill."""
    if (folder / identity.NAME).is_file():
        durable.mend(folder)
        return True
    broken_off = {"task", "recipe.json", ".task.partial", ".recipe.json.partial", ".identity.json.partial"}
    if others := sorted({path.name for path in folder.iterdir()} - broken_off - {LOCK}):
        raise RunError(
            f"{folder}: already exists and holds something else ({others[0]}); "
            "choose another with run=NAME, or delete it"
        )
    return False


def _create(folder: Path, recipe: Recipe, task: AnyTask, base: Path) -> None:
    """The identity comes last: it is what makes the folder a run."""
    try:
        durable.write_folder(folder / "task", task.save)
        durable.write_file(folder / "recipe.json", recipe.model_dump_json(indent=1))
        identity.write(folder, identity.identity(recipe, base, folder / "task"), [])
    except OSError as error:
        raise RunError(f"{folder}: cannot be written ({error.strerror})") from error


def _compare(folder: Path, recipe: Recipe, base: Path, accept: bool) -> list[dict[str, Any]]:
    """What has changed since the run began; refused unless accepted."""
    before, _ = identity.read(folder)
    found = identity.changes(before, identity.identity(recipe, base, folder / "task"))
    if not accept:
        identity.refuse(folder, found)
    return found


def _accept(folder: Path, recipe: Recipe, base: Path, found: list[dict[str, Any]], step: int) -> None:
    """Write down what changed, and from which step on."""
    _, earlier = identity.read(folder)
    durable.write_file(folder / "recipe.json", recipe.model_dump_json(indent=1))
    now = identity.identity(recipe, base, folder / "task")
    identity.write(folder, now, [*earlier, *({"step": step, **change} for change in found)])
