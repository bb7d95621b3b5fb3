"""The Python face of regard: train a recipe, load a model, and ask it to predict, evaluate, explain."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.api.listen import Block, mono
from regard.data.batching import sorted_batches
from regard.data.layout import scored
from regard.decode import in_order
from regard.errors import DataError, RecipeError, RegardError, RunError, quoted
from regard.explain.beams import BeamTree
from regard.explain.explanation import Explanation
from regard.explain.replay import explain
from regard.files.columns import Column
from regard.files.read import INTERACTION, histories
from regard.files.row import Asked, Row, several, text_of
from regard.interop.ct2_translator import BUILTIN, EngineChoice
from regard.interop.export import Report, export
from regard.metrics.resample import Difference, Weighable, differences, intervals
from regard.models import Ensemble, ModelConfig
from regard.models.ensemble import Member
from regard.models.meta import max_tokens
from regard.recipe import DataConfig, Recipe, laid_out
from regard.runs.prepare import complete, is_finished, pick_device, prepare
from regard.runs.store import load_model, save_model
from regard.tasks import AnyTask, TaskConfig, Writing, task_rows
from regard.tasks.seq2seq import Seq2Seq
from regard.tasks.task import Prediction, Tally, each_evaluating, evaluating
from regard.training.evaluate import evaluate
from regard.training.events import Event
from regard.training.ranks import is_first, process_group
from regard.training.sinks import ConsoleSink
from regard.training.stopping import Stop

READ_AHEAD = 1024
"""Texts read ahead at most when predicting from a stream: enough to batch by length, few enough to hold."""


@dataclass(frozen=True)
class Evaluation:
    metrics: dict[str, float]
    signatures: dict[str, str]
    n_examples: int
    by_kind: dict[str, dict[str, float]]
    """Scores of each kind of answer, where the task has kinds: spans of a tagger, or its tags."""
    tally: Tally = field(repr=False)
    """Contributions of every example, in the order of the rows."""
    examples: Sequence[Any] = field(repr=False, default=())
    """The encoded rows."""

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Interval by metric that 95 % of the scores on other data of the same kind lie in (bootstrap)."""
        return intervals(self.tally) if isinstance(self.tally, Weighable) else {}

    def against(self, other: "Evaluation") -> dict[str, Difference]:
        """Compare with another model on the same rows: how much better this is, and whether by chance.

        Of every metric that both have and that is computed alike.
        """
        one, two = self.tally, other.tally
        if not (isinstance(one, Weighable) and isinstance(two, Weighable) and type(one) is type(two)):
            raise RunError("models of different tasks are not compared; give two of the same")
        if one.truth != two.truth:
            raise DataError(
                "the two models were not asked the same; give both the same rows and columns (and compare "
                "only language models, and pretrained BERTs, of the same vocabulary and task settings)"
            )
        alike = {name for name in self.metrics if self.signatures.get(name) == other.signatures.get(name)}
        return {name: found for name, found in differences(one, two).items() if name in alike}


@dataclass
class Trained:
    """A model that can be used."""

    task: AnyTask
    task_config: TaskConfig
    model: nn.Module
    model_config: ModelConfig
    metrics: dict[str, Any]
    device: torch.device
    engines: EngineChoice = BUILTIN
    data: DataConfig | None = None
    """Data of the run it comes from, if there is one: they say how such files are laid out."""

    def predict(self, texts: Asked | Iterable[Asked], **decode: Any) -> Any:
        """A prediction for a text, or a list of them; keywords (beam=5, n_best=3) change the search.

        A picture or a recording is the path of its file (`pathlib.Path`) or its bytes. A task with several
        inputs takes a mapping for each: {"question": …, "context": …}.
        """
        if isinstance(texts, str | bytes | Path | Mapping):
            return next(self._stream([texts], 1, decode))
        return list(self._stream(texts, READ_AHEAD, decode))

    def stream(self, texts: Iterable[Asked | Row], **decode: Any) -> Iterator[Any]:
        """Predictions in the order of the texts, made in batches of similar length, in bounded memory.

        The first answer waits for one text only; how many are read ahead doubles from there.
        """
        return self._stream(texts, 1, decode)

    def as_completed(self, texts: Iterable[Asked | Row], **decode: Any) -> Iterator[tuple[int, Any]]:
        """(place, prediction) of every text, counted from 0, each as soon as its own search has ended."""
        return chain.from_iterable(self._chunks(texts, READ_AHEAD, decode))

    def _stream(self, texts: Iterable[Asked | Row], ahead: int, decode: dict[str, Any]) -> Iterator[Any]:
        for chunk in self._chunks(texts, ahead, decode):
            yield from in_order(chunk)

    def _chunks(
        self, texts: Iterable[Asked | Row], ahead: int, decode: dict[str, Any]
    ) -> Iterator[Iterator[tuple[int, Any]]]:
        """The answers to some texts after another, in the order in which they are ready."""
        task = self._with_settings(decode)
        translator, _ = self.engines.select(task)
        pending, done = several(texts), 0
        while chunk := list(islice(pending, ahead)):
            ahead = min(2 * ahead, READ_AHEAD)
            rows = task.asked(chunk, done + 1)
            if translator is not None and isinstance(task, Seq2Seq):
                yield enumerate(translator.answers(task, rows), done)
            else:
                yield each_evaluating(self.model, self._answers(task, task.encode(rows), done))
            done += len(chunk)

    def _answers(
        self, task: AnyTask, examples: Sequence[Any], first: int
    ) -> Generator[tuple[int, Any], None, None]:
        """The batches of short examples come first, as they keep the others waiting least."""
        sizes = [task.size(example) for example in examples]
        for indices in reversed(sorted_batches(sizes, 4096, task.max_batch_rows)):
            batch = task.collate([examples[i] for i in indices]).to(self.device)
            for place, answer in task.predict(self.model, batch):
                yield first + indices[place], answer

    def answered_by(self, **decode: Any) -> str:
        """Which engine answers with these settings, and why it is not the other."""
        return self.engines.select(self._with_settings(decode))[1]

    def follow(self, text: Asked | Row, **decode: Any) -> Generator[str, None, Prediction]:
        """Yield the beginning of the answer whenever more of it is certain; the last text is the answer.

        The prediction itself is what the generator returns.
        """
        task = self._with_settings(decode)
        if not isinstance(task, Writing):
            raise RecipeError(f"{task.kind} models answer at once; there is nothing to follow")
        (example,) = task.encode(task.asked([text]))
        steps = task.follow(self.model, task.collate([example]).to(self.device))
        return each_evaluating(self.model, steps)

    @property
    def listens(self) -> bool:
        """True if the model can hear sound while it comes in."""
        try:
            self.listener(16_000)
        except RegardError:
            return False
        return True

    def listener(self, rate: int, **decode: Any) -> Any:
        """What hears one stream of sound of so many samples a second: `push` a block, `finish`."""
        return self._with_settings(decode).listener(self.model, rate, self.device)

    def listen(self, chunks: Iterable[Block], *, rate: int = 16_000, **decode: Any) -> Iterator[Any]:
        """What is said in a sound while it comes in, in blocks of any size; the last one says that it is.

        A block is bytes of 16-bit little-endian samples, or a NumPy array: int16, or floats from −1 to 1.
        """
        listener = self.listener(rate, **decode)
        for samples in mono(chunks):
            if (partial := listener.push(samples)) is not None:
                yield partial
        yield listener.finish()

    def beams(self, text: Asked, **decode: Any) -> BeamTree:
        """The search for the answer: every beginning that was considered, and what became of it."""
        task = self._with_settings(decode)
        if not isinstance(task, Writing):
            raise RecipeError(f"{task.kind} models do not search; there is no tree of beams")
        (row,) = task.asked([text])
        (example,) = task.encode([row])
        if not task.is_answerable(example):
            raise DataError("there is nothing to search for: the text is empty")
        with evaluating(self.model):
            tree = task.recorded(self.model, task.collate([example]).to(self.device))
        settings = task.decode.model_dump(exclude_defaults=True) | {"beam": task.decode.beam}
        said = ", ".join(f"{name} {value}" for name, value in settings.items())
        question = "\n".join(text_of(row.cells[name]) for name in task.inputs)
        return BeamTree.of(tree, task.writer.tokenizer, str(self.model_config), question, said)

    def evaluate(
        self,
        paths: str | Path | Sequence[str | Path],
        columns: dict[str, Column] | None = None,
        *,
        encoding: str | None = None,
        tick: Callable[[int], None] = lambda done: None,
        **decode: Any,
    ) -> Evaluation:
        """Scores on files laid out like the training data; `tick` hears how many rows each batch scored.

        A run knows its columns and its encoding; a model folder takes columns by their names.
        """
        files = [str(paths)] if isinstance(paths, str | Path) else list(map(str, paths))
        data = self.data if files else None
        roles, encoding = laid_out(data, next(iter(files), ""), self.task.roles, columns, encoding)
        rows = task_rows(self.task_config, files, roles, encoding=encoding)
        return self.score(rows, ", ".join(files), tick=tick, **decode)

    def score(
        self,
        rows: Iterable[Row],
        name: str,
        *,
        tick: Callable[[int], None] = lambda done: None,
        **decode: Any,
    ) -> Evaluation:
        """Scores on rows; `name` is what errors call them."""
        task = self._with_settings(decode)
        examples = scored(task, rows, name)
        metrics, tally = evaluate(task, self.model, examples, self.device, thorough=True, tick=tick)
        return Evaluation(metrics, tally.signatures(), len(examples), tally.by_kind(), tally, examples)

    def history(self, user: str) -> list[str]:
        """Items a user chose in the training data, the oldest first; RunError if nobody is called so."""
        grouping, data = self.task_config.grouping, self.data
        if grouping is None or data is None:
            why = "a model folder names no training data" if grouping else f"{self.task.kind} has no users"
            raise RunError(f"user {quoted(user)}: {why}; give the input itself")
        columns, encoding = laid_out(data, data.train[0], INTERACTION)
        found = histories(data.train, columns, grouping.whole, encoding=encoding)
        if user not in found.last_of_user:
            raise RunError(f"user {quoted(user)}: not in {', '.join(data.train)}; give a history instead")
        items: list[str] = found.row(found.last_of_user[user], data.train[0]).cells["items"]
        return items

    def explain(self, text: Asked, answer: Any = None, **decode: Any) -> Explanation:
        """Explain an answer: what the model attended to, and how far that may be trusted.

        An `answer` that `predict` gave to the text is explained as it is; else it is predicted here.
        """
        if isinstance(self.model, Ensemble):
            raise RunError("models that answer together are explained one by one; load one of them")
        task = self._with_settings(decode)
        return explain(task, self.model, str(self.model_config), text, self.device, answer)

    def save(self, folder: str | Path) -> None:
        folder = Path(folder)
        if isinstance(self.model, Ensemble):
            raise RunError("models that answer together are saved one by one; load one of them")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise RunError(f"{folder}: already exists and is not empty; choose another")
        save_model(folder, self.task, self.task_config, self.model, self.model_config, self.metrics)

    def export(
        self,
        folder: str | Path,
        to: str,
        texts: Sequence[Asked],
        *,
        references: Sequence[str] | None = None,
        int8: bool = False,
        tick: Callable[[int], None] = lambda done: None,
    ) -> Report:
        """Write a folder for "hf", "ct2" or "onnx", once both engines are shown to answer `texts` alike.

        Texts are mappings where a task has several inputs, as in `predict`.
        `tick` hears how many texts are done; every text is done three times, and six with int8.
        """
        if isinstance(self.model, Ensemble):
            raise RunError("models that answer together are exported one by one; load one of them")
        return export(
            self.task,
            self.model,
            self.model_config,
            Path(folder),
            to,
            texts,
            references=references,
            int8=int8,
            tick=tick,
        )

    def _with_settings(self, decode: dict[str, Any]) -> AnyTask:
        return self.task.with_settings(**decode) if decode else self.task


def load(
    folder: str | Path,
    *others: str | Path,
    device: str = "auto",
    engine: str = "builtin",
    int8: bool = False,
) -> Trained:
    """A model from a run folder or a model folder; with others, models that answer together.

    `engine="ct2"` answers with CTranslate2, `"auto"` with it where it can; `int8` lets it round the weights.
    """
    task, task_config, model, model_config, metrics = load_model(Path(folder))
    if others:
        members = [_member(model, Path(folder))]
        members += [_alike(Path(other), Path(folder), task, task_config) for other in others]
        model, metrics = Ensemble(members), {}
    recipe, where = Path(folder) / "recipe.json", pick_device(device)
    data = Recipe.read(recipe).data if recipe.is_file() else None
    engines = EngineChoice.resolve(engine, task, model, model_config, where, int8=int8)
    return Trained(task, task_config, model.to(where), model_config, metrics, where, engines, data)


def _member(model: nn.Module, folder: Path) -> Member:
    if not isinstance(model, Member):
        raise RunError(f"{folder}: only models with an encoder and a decoder answer together")
    return model


def _alike(other: Path, folder: Path, task: AnyTask, task_config: TaskConfig) -> Member:
    """The model of another run, which must write in the same vocabulary and have room for as long texts."""
    its_task, _, model, config, _ = load_model(other)
    member = _member(model, other)
    if its_task.kind != task.kind:
        raise RunError(f"{other}: a {its_task.kind} model cannot answer together with {folder} ({task.kind})")
    for role, tokenizer in task.tokenizers.items():
        if not tokenizer.is_like(its_task.tokenizers[role]):
            raise RunError(
                f"{other}: has another {role} vocabulary than {folder}; models that answer together are "
                "trained on the same data with the same tokenizer (and another seed or other sizes)"
            )
    most, needed = max_tokens(config), task_config.longest(config)
    if most is not None and most <= needed:
        raise RunError(
            f"{other}: has {most} positions, but texts of {folder} may have {needed} tokens and an end; "
            "give it first"
        )
    return member


def train(
    recipe: Recipe | str | Path,
    *overrides: str,
    fresh: bool = False,
    accept_changes: bool = False,
    quiet: bool = False,
) -> Trained:
    """Train a recipe (an object, or a file with overrides like "model.n_heads=8") to a scored model.

    A run that stands in its folder goes on from where it is; `fresh` sets it aside and begins anew.
    Paths in a recipe file start from the current folder, as on the command line.
    """
    if not isinstance(recipe, Recipe):
        recipe = Recipe.read(Path(recipe), overrides)
    elif overrides:
        raise RecipeError(
            f"{overrides[0]!r}: overrides are for a recipe file; change the Recipe object instead"
        )
    console, stop = None if quiet or not is_first() else ConsoleSink(), Stop()
    tell: Callable[[Event], None] = console or (lambda event: None)
    if not fresh and is_finished(recipe):
        if is_first():
            complete(Path(recipe.run))
        if console is not None:
            console.already_finished(recipe.run)
        return load(recipe.run, device=recipe.train.device)
    try:
        with (
            stop.listening(),
            process_group(pick_device(recipe.train.device), shard=recipe.train.shard) as ranks,
            prepare(
                recipe, fresh=fresh, accept_changes=accept_changes, stop=stop, ranks=ranks, tell=tell
            ) as prepared,
        ):
            for event in prepared.events():
                tell(event)
    finally:
        if console is not None:
            console.close()
    return load(prepared.folder, device=recipe.train.device)
