"""The data of a recipe: rows to score, and training examples, encoded once and mapped from then on.

What is encoded lies in `.regard` beside the run folders, under a name made of everything it depends on, so
that other runs on the same data find it. It may be deleted at any time.
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

CHOOSE = "held out of train for validation; to choose what is, give data.valid"
"""What can be done where just that row will not do, such as the only one with its label."""


@dataclass(frozen=True)
class Corpus:
    recipe: Recipe
    base: Path

    @property
    def cache(self) -> Path:
        return (self.base / self.recipe.run).parent / ".regard"

    @property
    def memo(self) -> Path:
        """Remembers the sums of data files."""
        return self.cache / "files.json"

    def rows(self, split: str) -> Iterator[Row]:
        """As they are in the files."""
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
        """Where training rows end and held-out ones begin."""
        return self.recipe.hold_out.border(self.rows("train"))

    def learnt(self, held_out: list[Row]) -> Iterator[Row]:
        """The training rows but those that are held out for validation, which go to `held_out`."""
        rows = self.rows("train")
        if self.recipe.data.valid is not None:
            return rows
        return self.recipe.hold_out.split(self.border, rows, held_out)

    def fit(self, tokenizer: Tokenizer | None = None) -> AnyTask:
        """The task with its labels and its vocabulary, learnt from the training rows unless given."""
        return fitted(self.recipe, self.learnt([]), tokenizer, self.described())

    def described(self) -> dict[str, Described]:
        """What items are called, where there is a file that says it."""
        data = self.recipe.data
        if data.titles is None:
            return {}
        return catalogue(data.titles, data.title_columns, encoding=data.encoding, base=self.base)

    def scored(self, task: AnyTask) -> dict[str, Sequence[Any]]:
        """The examples of the splits that are scored, not trained on."""
        given = {split: getattr(self.recipe.data, split) for split in ("valid", "test")}
        found = {
            split: scored(task, self.rows(split), ", ".join(files)) for split, files in given.items() if files
        }
        if (rows := self.held_out_test()) is not None:
            found["test"] = scored(task, rows, ", ".join(self.recipe.data.train))
        return found

    def held_out_test(self) -> Iterator[Row] | None:
        """The rows to test with that are held out of the training data, where none are given and the task
        says what of them is.
        """
        hold_out, data = self.recipe.hold_out, self.recipe.data
        if data.valid or data.test or not isinstance(hold_out, HoldsOutTest):
            return None
        return hold_out.test(self.border, self.rows("train"))

    def notes(self, task: AnyTask, scored: Mapping[str, Sequence[Any]]) -> list[str]:
        """What reading the training data left out, and what is worth knowing about what will be scored."""
        grouping, data = self.recipe.task.grouping, self.recipe.data
        if grouping is None:
            return []
        columns = self.recipe.columns()
        found = histories(data.train, columns, grouping, encoding=data.encoding, base=self.base)
        return [*found.effect.sentences(grouping), *task.notes(scored)]

    def train(
        self, task: AnyTask, identity: dict[str, Any], tick: Callable[[int], None], *, resumed: bool = False
    ) -> tuple[Examples, Path]:
        """What is trained on, from the cache or into it; and where in the cache it is.

        What a resumed run goes on with is looked at block by block.
        """
        folder = self.cache / _key(self.recipe, identity)
        self.cache.mkdir(parents=True, exist_ok=True)
        with turn(self.cache / f"{folder.name}.lock"):
            found, name = task.layout.open(task, folder, whole=resumed), ", ".join(self.recipe.data.train)
            if found is None:
                held_out: list[Row] = []
                rows = self.learnt(held_out)
                cache.write(task, rows, folder, name=name, held_out=held_out, tick=tick)
                found = task.layout.open(task, folder)
        assert found is not None
        found.refuse_unfit(name)
        return found, folder

    def held_out(self, task: AnyTask, rows: Sequence[Row]) -> Sequence[Any]:
        """Validation examples for a recipe that gives none, of the rows that were held out."""
        files = ", ".join(self.recipe.data.train)
        if rows:
            try:
                return scored(task, rows, files)
            except DataError as error:
                raise DataError(f"{error} ({CHOOSE})") from error
        needed = f"{HELD_OUT} {self.recipe.hold_out.wholes} are needed to hold one out"
        raise DataError(f"{files}: no usable examples for valid; {needed}, or give data.valid")


def fitted(
    recipe: Recipe,
    rows: Iterable[Row],
    tokenizer: Tokenizer | None = None,
    described: Mapping[str, Described] | None = None,
) -> AnyTask:
    """Only a task whose model can begin with another's encoder is ever given a vocabulary, and only one that
    recommends what items are called.
    """
    kind: Any = TASKS[recipe.task.kind]
    given: dict[str, Any] = {} if tokenizer is None else {"tokenizer": tokenizer}
    if described:
        given["described"] = described
    task: AnyTask = kind.fit(recipe.task, rows, **given)
    return task


def _key(recipe: Recipe, identity: dict[str, Any]) -> str:
    """Of everything that encoded examples depend on."""
    searching = "recipe.task.decode"
    encoding = ("recipe.task.", "recipe.data.columns", "recipe.data.encoding", "vocabulary.")
    parts = {
        name: value
        for name, value in identity.items()
        if name.startswith(encoding) and not name.startswith(searching)
    }
    parts["files"] = [identity[f"data.{file}"] for file in recipe.data.train]
    parts["held out"] = recipe.data.valid is None
    parts["format"] = cache.FORMAT_VERSION
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
