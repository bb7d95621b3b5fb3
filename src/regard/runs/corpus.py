"""The data of a recipe: rows to score, and training examples, encoded once and mapped from then on.

Encoded data lie in `.regard` beside the run folders, under a hash of all they depend on, so that other runs
on the same data find them. They may be deleted at any time.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.data import cache
from regard.data.cache import Examples
from regard.data.layout import scored
from regard.data.splits import HELD_OUT, HoldsOutTest
from regard.errors import DataError
from regard.files.catalogue import Described, catalogue
from regard.files.read import histories
from regard.files.row import Row
from regard.recipe import Recipe
from regard.runs.lock import turn
from regard.tasks import TASKS, AnyTask, task_rows
from regard.text.tokenizer import Tokenizer

CHOOSE = "this row was held out of train for validation; to choose other rows, give data.valid"
"""Advice for a held-out row that cannot be scored, such as the only one with its label."""


@dataclass(frozen=True)
class Corpus:
    recipe: Recipe
    base: Path

    @property
    def cache(self) -> Path:
        return (self.base / self.recipe.run).parent / ".regard"

    @property
    def memo(self) -> Path:
        """The file of the data files' checksums."""
        return self.cache / "files.json"

    def rows(self, split: str) -> Iterator[Row]:
        """The rows of a split, as they are in the files."""
        data = self.recipe.data
        return task_rows(
            self.recipe.task,
            getattr(data, split),
            self.recipe.columns(),
            encoding=data.encoding,
            base=self.base,
            learnt=split == "train",
        )

    @cached_property
    def border(self) -> Any:
        """The border between training rows and held-out ones."""
        return self.recipe.hold_out.border(self.rows("train"))

    def learnt(self, held_out: list[Row]) -> Iterator[Row]:
        """The training rows; those held out for validation go to `held_out`."""
        rows = self.rows("train")
        if self.recipe.data.valid is not None:
            return rows
        return self.recipe.hold_out.split(self.border, rows, held_out)

    def fit(self, tokenizer: Tokenizer | None = None) -> AnyTask:
        """The task with its labels and its vocabulary, learnt from the training rows unless given."""
        return fitted(self.recipe, self.learnt([]), tokenizer, self.described())

    def described(self) -> dict[str, Described]:
        """Titles and categories of items, if the recipe names a file of them."""
        data = self.recipe.data
        if data.titles is None:
            return {}
        return catalogue(data.titles, data.title_columns, encoding=data.encoding, base=self.base)

    def scored(self, task: AnyTask) -> dict[str, Sequence[Any]]:
        """The examples of the validation and test data."""
        splits = {split: getattr(self.recipe.data, split) for split in ("valid", "test")}
        examples = {
            split: scored(task, self.rows(split), ", ".join(files))
            for split, files in splits.items()
            if files
        }
        if (rows := self.held_out_test()) is not None:
            examples["test"] = scored(task, rows, ", ".join(self.recipe.data.train))
        return examples

    def held_out_test(self) -> Iterator[Row] | None:
        """Test rows held out of the training data, if no test data are given and the task's hold-out has
        some.
        """
        hold_out, data = self.recipe.hold_out, self.recipe.data
        if data.valid or data.test or not isinstance(hold_out, HoldsOutTest):
            return None
        return hold_out.test(self.border, self.rows("train"))

    def notes(self, task: AnyTask, scored: Mapping[str, Sequence[Any]]) -> list[str]:
        """Remarks about what reading the training data left out, and about the examples to score."""
        grouping, data = self.recipe.task.grouping, self.recipe.data
        if grouping is None:
            return []
        columns = self.recipe.columns()
        grouped = histories(data.train, columns, grouping, encoding=data.encoding, base=self.base)
        return [*grouped.effect.sentences(grouping), *task.notes(scored)]

    def train(
        self, task: AnyTask, identity: dict[str, Any], tick: Callable[[int], None], *, resumed: bool = False
    ) -> tuple[Examples, Path]:
        """The training examples, from the cache or encoded into it, and their folder.

        For a resumed run every block of them is checked.
        """
        folder = self.cache / _key(self.recipe, identity)
        self.cache.mkdir(parents=True, exist_ok=True)
        with turn(self.cache / f"{folder.name}.lock"):
            examples, name = task.layout.open(task, folder, whole=resumed), ", ".join(self.recipe.data.train)
            if examples is None:
                held_out: list[Row] = []
                rows = self.learnt(held_out)
                cache.write(task, rows, folder, name=name, held_out=held_out, tick=tick)
                examples = task.layout.open(task, folder)
        assert examples is not None
        examples.refuse_unfit(name)
        return examples, folder

    def held_out(self, task: AnyTask, rows: Sequence[Row]) -> Sequence[Any]:
        """Validation examples from the held-out rows, for a recipe without validation data."""
        files = ", ".join(self.recipe.data.train)
        if rows:
            try:
                return scored(task, rows, files)
            except DataError as error:
                raise DataError(f"{error} ({CHOOSE})") from error
        needed = f"there are fewer than {HELD_OUT} {self.recipe.hold_out.wholes}"
        raise DataError(
            f"{files}: {needed}, too few to hold any out for validation; give more data, or data.valid"
        )


def fitted(
    recipe: Recipe,
    rows: Iterable[Row],
    tokenizer: Tokenizer | None = None,
    described: Mapping[str, Described] | None = None,
) -> AnyTask:
    """The task, fitted to the rows; a vocabulary comes from a trained encoder, titles only with
    recommendation.
    """
    kind: Any = TASKS[recipe.task.kind]
    extra: dict[str, Any] = {} if tokenizer is None else {"tokenizer": tokenizer}
    if described:
        extra["described"] = described
    task: AnyTask = kind.fit(recipe.task, rows, **extra)
    return task


def _key(recipe: Recipe, identity: dict[str, Any]) -> str:
    """A hash of everything that encoded examples depend on."""
    searching = "recipe.task.decode"
    encoding = ("recipe.task.", "recipe.data.columns", "recipe.data.encoding", "vocabulary.")
    parts = {
        name: value
        for name, value in identity.items()
        if name.startswith(encoding) and not name.startswith(searching)
    }
    parts["files"] = [identity[f"data.{file}"] for file in recipe.data.train]
    parts["held out"] = recipe.data.valid is None
    if recipe.data.fold is not None:
        parts["fold"] = recipe.data.fold
    parts["format"] = cache.FORMAT_VERSION
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
