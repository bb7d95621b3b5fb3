"""A run: from a recipe to a folder that holds everything about it.

runs/NAME/recipe.json     the recipe, resolved
          identity.json   all the result depends on, compared when the run is resumed
          metrics.jsonl   a line every few steps, and one per validation
          checkpoints/    states that training can be resumed from
          task/           vocabulary and labels
          model/          the finished model: see store.py; written last
          report.html     curves, samples, use of time; written at the end, or by `regard report`
          lock            the training process, while there is one
     .regard/             encoded training data, which runs share: see corpus.py
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from regard import durable
from regard.baselines.standing import Standing
from regard.data.cache import Examples, held_out
from regard.errors import DataError, RecipeError, RunError
from regard.files.fingerprint import fingerprints
from regard.interop.pretrained import Pretrained, initialize, load_pretrained, resolve
from regard.metrics.resample import Weighable, intervals
from regard.models.layer_depth import layer_rates
from regard.models.lora import is_adapted, merged
from regard.models.meta import build_meta
from regard.recipe import Recipe
from regard.runs import identity
from regard.runs.baselines import of_corpus, suitable
from regard.runs.corpus import Corpus
from regard.runs.lock import NAME as LOCK
from regard.runs.lock import locked
from regard.runs.mistakes import worst_mistakes
from regard.runs.report import write_report
from regard.runs.report.page import NAME as REPORT
from regard.runs.store import save_model, write_scores
from regard.tasks import TASKS, AnyTask
from regard.tasks.task import evaluating
from regard.training import checkpoint
from regard.training.events import Encoding, Event, Finished, Noted, Prepared, Scoring, SetAside
from regard.training.journal import Journal
from regard.training.loop import run
from regard.training.machine import Machine, keep_freed_memory, limit_kernel_cache
from regard.training.ranks import Ranks, full_tensor
from regard.training.state import Training
from regard.training.stopping import Stop
from regard.training.tensorboard import TensorBoardSink

ADAM = 4
"""Copies of every parameter in training: weight, gradient and two moments."""


@dataclass
class Run:
    """A recipe ready to be trained: its data are read and its model is built."""

    corpus: Corpus
    folder: Path
    training: Training
    test: Sequence[Any] | None
    set_aside: list[SetAside] = field(default_factory=list)
    """Damaged checkpoints that were newer than the one that is resumed."""
    held: ExitStack = field(default_factory=ExitStack)
    """Resources released at the end: the folder's lock, the loader's threads."""

    @property
    def recipe(self) -> Recipe:
        return self.corpus.recipe

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.held.close()

    def events(self) -> Iterator[Event]:
        """Train; write the journal; at the end score, and save the model folder."""
        plan, training = self.recipe.train, self.training
        if not training.ranks.first:  # rank 0 reports and writes for all
            for event in run(training):
                if isinstance(event, Finished):  # only if each has a part of the model
                    self.finish(event)
                yield event
            training.ranks.broadcast()
            return
        journal = Journal(self.folder / "metrics.jsonl", plan.log_every, training.progress.step)
        board = TensorBoardSink(self.folder / "tensorboard", plan.log_every) if plan.tensorboard else None
        if board is not None:
            self.held.callback(board.close)
        yield Prepared(
            run=self.folder,
            n_train=len(training.train),
            left_out=training.train.left_out,
            n_valid=len(training.valid),
            n_parameters=sum(parameter.numel() for parameter in training.model.parameters()),
            n_learning=sum(one.numel() for one in training.model.parameters() if one.requires_grad),
            model=str(self.recipe.model),
            device=f"{training.device}{', products in bfloat16' * training.bfloat16}",
            resumed_step=training.progress.step,
        )
        yield from self.set_aside
        for event in run(training):
            journal(event)
            if board is not None:
                board(event)
            if isinstance(event, Finished):
                if self.test is not None:
                    yield Scoring(event.step, "test")
                model, metrics = self.finish(event)
                training.ranks.broadcast(True)  # the others may load it
                if plan.baselines and suitable(training.task):
                    yield Scoring(event.step, "baselines")
                    metrics["baselines"] = self.baselines(event.reason)
                    write_scores(self.folder / "model", self.recipe.task, self.recipe.model, model, metrics)
                with suppress(Exception):  # the model is saved; `regard report` shows the error
                    self.write_mistakes()
                    write_report(self.folder)
            yield event

    def finish(self, event: Finished) -> tuple[nn.Module, dict[str, Any]]:
        """Score the test data and write the model folder, which marks the run as finished; returns its
        content.
        """
        recipe, training = self.recipe, self.training
        with evaluating(training.model):
            training.task = training.task.calibrated(training.model, training.valid, training.device)
        scores = {"valid": event.metrics}
        ranges: dict[str, Any] = {}
        if self.test is not None:
            scores["test"], tally = training.score(self.test, thorough=True)
            training.tally = tally
            if isinstance(tally, Weighable):
                ranges["test"] = intervals(tally)
        metrics = {
            "format_version": 1,
            "scores": scores,
            "intervals": ranges,
            "signatures": event.signatures,
            "step": event.step,
            "minutes": round(event.seconds / 60, 2),
            "stopped_by": event.reason,
            "weights": event.chosen,
            "seed": recipe.seed,
        }
        is_whole = not (training.is_sharded or is_adapted(training.model))
        model = training.model if is_whole else self._whole_model()
        if training.ranks.first:
            save_model(self.folder / "model", training.task, recipe.task, model, recipe.model, metrics)
        return model, metrics

    def baselines(self, stopped_by: str) -> dict[str, Any]:
        """Scores of the baselines on the split that was scored last, as JSON.

        The model is saved already, so an error in them is only noted.
        """
        training = self.training
        split, examples = ("valid", training.valid) if self.test is None else ("test", self.test)
        assert training.tally is not None
        try:
            scores = of_corpus(self.corpus, training.task, examples, split, lambda name: training.stop.poll())
            standing = scores.beside(training.tally, self.recipe, stopped_by)
        except Exception as fault:
            training.stop.poll()  # C code may report a signal as an error
            standing = Standing(notes=(f"baselines: not measured ({type(fault).__name__}: {fault})",))
        return standing.model_dump(mode="json")

    def write_mistakes(self) -> None:
        """Keep the worst mistakes on the split that was scored last, for the report."""
        training = self.training
        split, examples = ("valid", training.valid) if self.test is None else ("test", self.test)
        if training.tally is None or training.is_sharded:
            return
        found = worst_mistakes(
            training.task, training.model, examples, training.tally, split, training.device
        )
        if found is not None:
            found.write(self.folder)

    def _whole_model(self) -> nn.Module:
        """The model of the recipe, gathered tensor by tensor from all ranks, with low-rank changes merged."""
        model = self.recipe.model.build(self.training.task.widths)
        parts = merged(self.training.model)
        checkpoint.fill(
            model, {name: full_tensor(part).cpu() for name, part in parts.items()}, "the trained model"
        )
        return model


def prepare(
    recipe: Recipe,
    base: Path = Path(),
    *,
    fresh: bool = False,
    accept_changes: bool = False,
    stop: Stop | None = None,
    ranks: Ranks | None = None,
    tell: Callable[[Event], None] = lambda event: None,
) -> Run:
    """Lock the folder, read the data, learn the vocabulary and build the model, or resume the run in the
    folder.

    Paths start from `base`; `fresh` sets an existing run aside; `tell` is called with events of encoding.
    Every split is read here, so that an error in the test data shows before training.
    """
    folder, ranks, stop = base / recipe.run, ranks or Ranks(), stop or Stop()
    with ExitStack() as held:
        accepted: list[dict[str, Any]] = []
        device = pick_device(recipe.train.device)
        pretrained = load_pretrained(recipe, base)
        recipe = resolve(recipe, pretrained)
        corpus = Corpus(recipe, base)
        kind: type[AnyTask] = TASKS[recipe.task.kind]
        if ranks.first:
            if fresh:
                set_aside_run(folder)
            held.enter_context(locked(folder))
            begun = _begun(folder)
            if begun:
                now = identity.identity(recipe, base, folder / "task", corpus.memo, _weights(pretrained))
                accepted = _compare(folder, now, accept_changes)
            vocabulary = None if pretrained is None else pretrained.vocabulary
            task = kind.load(recipe.task, folder / "task") if begun else corpus.fit(vocabulary)
            scored = corpus.scored(task)
            _fits(recipe, task)
            for sentence in () if begun else corpus.notes(task, scored):
                tell(Noted(sentence))
            with _leaving_nothing(folder):
                if not begun:
                    durable.write_folder(folder / "task", task.save)
                    durable.write_file(folder / "recipe.json", recipe.model_dump_json(indent=1))
                    now = identity.identity(recipe, base, folder / "task", corpus.memo, _weights(pretrained))
                train, place = corpus.train(task, now, _encoding(tell, stop), resumed=begun)
                valid = scored.get("valid") or corpus.held_out(task, held_out(place))
                if not begun:
                    identity.write(folder, now, [])  # from now on the folder is a run
            ranks.broadcast(str(place))
        else:
            place = Path(ranks.broadcast())
            task = kind.load(recipe.task, folder / "task")
            scored = corpus.scored(task) if ranks.shard else {}
            valid = scored.get("valid") or (corpus.held_out(task, held_out(place)) if ranks.shard else [])
            opened = task.layout.open(task, place)
            if opened is None:
                raise DataError(
                    f"{place}: cannot be read by rank {ranks.rank}; is the folder shared by all machines?"
                )
            train = opened
        training = assemble(recipe, task, train, valid, folder, device, ranks, pretrained)
        training.stop = stop
        held.callback(training.loader.close)
        aside = training.resume()
        if accepted:
            _accept(folder, recipe, now, accepted, training.progress.step)
        return Run(corpus, folder, training, scored.get("test"), aside, held.pop_all())


def _weights(pretrained: Pretrained | None) -> Path | None:
    return None if pretrained is None else pretrained.weights


def _encoding(tell: Callable[[Event], None], stop: Stop) -> Callable[[int], None]:
    """A callback that counts encoded rows, reports their number, and polls for signals."""
    began, done = time.perf_counter(), 0

    def tick(rows: int) -> None:
        nonlocal done
        done += rows
        tell(Encoding(done, time.perf_counter() - began))
        stop.poll()

    return tick


@contextmanager
def _leaving_nothing(folder: Path) -> Iterator[None]:
    """Remove the traces of a run that fails before it has begun; one that has begun stays."""
    try:
        yield
    except BaseException as error:
        if not (folder / identity.NAME).is_file():
            durable.clear(folder / "task")
            durable.clear(folder / "recipe.json")
        if isinstance(error, OSError):
            raise RunError(f"{error.filename or folder}: cannot be written ({error.strerror})") from error
        raise


def _fits(recipe: Recipe, task: AnyTask) -> None:
    needed, available = least_memory(recipe, task), Machine.here().memory
    if needed > available:
        raise RecipeError(
            f"model: its weights alone need {needed / 1e9:.1f} GB in training, but this machine has "
            f"{available / 1e9:.1f} GB; choose smaller sizes"
        )


def is_finished(recipe: Recipe, base: Path = Path()) -> bool:
    """True if exactly this recipe has been trained to its end in its folder, on the same data."""
    folder = base / recipe.run
    if not ((folder / "model" / "config.json").is_file() and (folder / identity.NAME).is_file()):
        return False
    saved, _ = identity.read(folder)
    was = {key: value for key, value in saved.items() if key.startswith("recipe.")}
    if identity.changes(was, identity.of_recipe(recipe)) and identity.changes(
        was, identity.of_recipe(resolve(recipe, load_pretrained(recipe, base)))
    ):
        return False
    data = {key.removeprefix("data."): value for key, value in saved.items() if key.startswith("data.")}
    return not any(_has_changed(name, was, recipe, base) for name, was in data.items())


def complete(folder: Path) -> None:
    """Clean up after a kill that came after the model was saved, and write a missing report."""
    for parent in (folder, folder / "model"):
        durable.mend(parent)
    if not (folder / REPORT).exists():
        with suppress(Exception):  # the model is complete; `regard report` shows the error
            write_report(folder)


def _has_changed(name: str, was: str, recipe: Recipe, base: Path) -> bool:
    """True if data have changed; not if they are missing, as a finished run does not need them."""
    memo = Corpus(recipe, base).memo
    with suppress(DataError):
        return fingerprints([name], base, memo, identity.leads_to(recipe, base))[name] != was
    return False


def set_aside_run(folder: Path) -> Path | None:
    """Rename a run, so that its folder is free; nothing is deleted."""
    if not folder.exists():
        return None
    with locked(folder):
        if not (folder / identity.NAME).is_file() and any(path.name != LOCK for path in folder.iterdir()):
            raise RunError(
                f"{folder}: is not a run of regard, so --fresh does not move it; choose another run=NAME"
            )
    place = next(
        place for n in count(1) if not (place := folder.with_name(f"{folder.name}.old-{n}")).exists()
    )
    folder.rename(place)
    return place


def least_memory(recipe: Recipe, task: AnyTask) -> int:
    """Bytes that the parameters alone will need in training."""
    parameters = build_meta(recipe.model, task.widths).parameters()
    return sum(ADAM * parameter.numel() * parameter.element_size() for parameter in parameters)


def assemble(
    recipe: Recipe,
    task: AnyTask,
    train: Examples,
    valid: Sequence[Any],
    folder: Path,
    device: torch.device,
    ranks: Ranks | None = None,
    pretrained: Pretrained | None = None,
) -> Training:
    """A new model of the recipe with its data, ready for training; nothing is written yet."""
    if recipe.train.threads is not None:
        torch.set_num_threads(recipe.train.threads)
    if device.type == "cpu":
        keep_freed_memory()
        limit_kernel_cache()
    torch.manual_seed(recipe.seed)
    model = recipe.model.build(task.widths).to(device)
    if pretrained is not None:
        initialize(model, pretrained)
    recipe.model.initialise(model, train, task)
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
        rates=layer_rates(model, recipe.train.layer_decay) if recipe.train.layer_decay < 1 else {},
    )


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
    """True if the folder has a run that can be resumed; RunError if it has anything else."""
    if (folder / identity.NAME).is_file():
        durable.mend(folder)
        return True
    broken_off = {"task", "recipe.json", ".task.partial", ".recipe.json.partial", ".identity.json.partial"}
    if others := sorted({path.name for path in folder.iterdir()} - broken_off - {LOCK}):
        raise RunError(
            f"{folder}: already exists and is not a run (it has {others[0]}); "
            "choose another folder with run=NAME, or delete it"
        )
    return False


def _compare(folder: Path, now: dict[str, Any], accept: bool) -> list[dict[str, Any]]:
    """Changes since the run began; RunError unless they are accepted."""
    before, _ = identity.read(folder)
    changed = identity.changes(before, now)
    if not accept:
        identity.refuse(folder, changed)
    return changed


def _accept(
    folder: Path, recipe: Recipe, now: dict[str, Any], changed: list[dict[str, Any]], step: int
) -> None:
    """Save the accepted changes, with the step from which they hold."""
    _, earlier = identity.read(folder)
    durable.write_file(folder / "recipe.json", recipe.model_dump_json(indent=1))
    identity.write(folder, now, [*earlier, *({"step": step, **change} for change in changed)])
