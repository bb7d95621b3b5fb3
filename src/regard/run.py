"""A run: from a recipe to a folder that holds everything about it.

runs/NAME/recipe.json     the recipe as it was understood
          metrics.jsonl   a line every few steps, and one per validation
          checkpoints/    where training can go on from
          task/           vocabulary and labels
          model/          the finished model: see store.py
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.data.source import Row, read_rows
from regard.errors import DataError, RecipeError, RunError
from regard.recipe import Recipe
from regard.store import save_model
from regard.tasks import TASKS, AnyTask
from regard.training import checkpoint
from regard.training.evaluate import evaluate
from regard.training.events import Event, Finished, Prepared, Scoring
from regard.training.loop import Training, run
from regard.training.sinks import Journal

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

    def events(self) -> Iterator[Event]:
        """Train; write the journal; at the end score, and save the model folder."""
        plan, training = self.recipe.train, self.training
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
        )
        for event in run(training):
            journal(event)
            if isinstance(event, Finished):
                yield Scoring(event.step, tuple(self.scored))
                self.finish(event)
            yield event

    @property
    def scored(self) -> dict[str, Sequence[Any]]:
        """The examples that the finished model is scored on."""
        test = {} if self.test is None else {"test": self.test}
        return {"valid": self.training.valid} | test

    def finish(self, event: Finished) -> None:
        """Score validation and test thoroughly, and write the model folder."""
        recipe, training = self.recipe, self.training
        scored: dict[str, dict[str, float]] = {}
        signatures: dict[str, str] = {}
        for name, examples in self.scored.items():
            scored[name], tally = evaluate(
                training.task,
                training.model,
                examples,
                training.device,
                thorough=True,
                batch_tokens=recipe.train.batch_tokens,
            )
            signatures |= tally.signatures()
        metrics = {
            "format_version": 1,
            "scores": scored,
            "signatures": signatures,
            "step": event.step,
            "minutes": round(event.seconds / 60, 2),
            "stopped_by": event.reason,
            "weights": event.chosen,
            "seed": recipe.seed,
        }
        save_model(self.folder / "model", training.task, recipe.task, training.model, recipe.model, metrics)


def prepare(recipe: Recipe, base: Path = Path(), *, resume: bool = False) -> Run:
    """Check the folder, read the data, learn the vocabulary, build the model. `base` is where paths start.

    Every split is read and encoded here: a fault in the test data must not wait for the end of training.
    """
    folder = base / recipe.run
    _check_folder(folder, resume)
    device = pick_device(recipe.train.device)
    train_rows = list(read_split(recipe, recipe.data.train, base))
    valid_rows = (
        hold_out(train_rows)
        if recipe.data.valid is None
        else list(read_split(recipe, recipe.data.valid, base))
    )
    test_rows = None if recipe.data.test is None else list(read_split(recipe, recipe.data.test, base))
    kind: type[AnyTask] = TASKS[recipe.task.kind]
    task = kind.load(recipe.task, folder / "task") if resume else kind.fit(recipe.task, train_rows)
    encoded = task.encode(train_rows)
    train = [example for example in encoded if task.usable(example)]
    valid = task.encode(valid_rows)
    test = None if test_rows is None else task.encode(test_rows)
    for name, examples, files in (
        ("training", train, recipe.data.train),
        ("validation", valid, recipe.data.valid),
    ):
        if not examples:
            raise DataError(f"{', '.join(files or recipe.data.train)}: no usable {name} examples")
    training = assemble(recipe, task, train, valid, folder, device)
    if resume:
        training.resume()
    else:
        _create(folder, recipe, task)
    return Run(recipe, folder, training, test, len(encoded) - len(train))


def hold_out(train_rows: list[Row]) -> list[Row]:
    """Takes every 20th row out of the training rows, for validation."""
    held = train_rows[HELD_OUT - 1 :: HELD_OUT]
    del train_rows[HELD_OUT - 1 :: HELD_OUT]
    return held


def assemble(
    recipe: Recipe,
    task: AnyTask,
    train: Sequence[Any],
    valid: Sequence[Any],
    folder: Path,
    device: torch.device,
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
    )


def read_split(recipe: Recipe, files: Sequence[str], base: Path) -> Iterator[Row]:
    return read_rows(files, recipe.columns(), encoding=recipe.data.encoding, base=base)


def pick_device(name: str) -> torch.device:
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        torch.empty(0, device=name)
        return torch.device(name)
    except (RuntimeError, AssertionError):
        raise RecipeError(f"train.device: {name!r} is not available here; use auto or cpu") from None


def _check_folder(folder: Path, resume: bool) -> None:
    saved = checkpoint.saved_steps(folder / "checkpoints")
    if resume and not saved:
        raise RunError(f"{folder}: there is no checkpoint to resume from; train without --resume")
    if not resume and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        go_on = f", or go on from step {saved[-1]} with --resume" if saved else ""
        raise RunError(
            f"{folder}: already exists and is not empty; choose another with run=NAME, or delete it{go_on}"
        )


def _create(folder: Path, recipe: Recipe, task: AnyTask) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "task").mkdir()
        task.save(folder / "task")
        (folder / "recipe.json").write_text(recipe.model_dump_json(indent=1), "utf-8")
    except OSError as error:
        raise RunError(f"{folder}: cannot be written ({error.strerror})") from error
