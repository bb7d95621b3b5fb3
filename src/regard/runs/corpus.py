"""The data of a recipe: rows to score, and training examples, encoded once and mapped from then on.

What is encoded lies in `.regard` beside the run folders, under a name made of everything it depends on, so
that other runs on the same data find it. It may be deleted at any time.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.data import examples
from regard.data.examples import Examples
from regard.data.layout import layout, refuse_unfit, scored
from regard.files.source import Row, read_rows
from regard.text.tokenizer import Tokenizer
from regard.errors import DataError
from regard.runs.lock import turn
from regard.recipe import Recipe
from regard.tasks import TASKS, AnyTask, documents, reading, together, wholes

HELD_OUT = 20
"""Without validation data, every 20th training row is held out,"""
MOST_HELD_OUT = 2000
"""but no more than this."""
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
        return read_rows(
            getattr(data, split),
            self.recipe.columns(),
            encoding=data.encoding,
            base=self.base,
            by=reading(self.recipe.task),
        )

    @cached_property
    def before_end(self) -> int:
        """How many characters of a text are learnt from, where its end is held out."""
        return examples.before_end(self.rows("train"))

    def learnt(self, kept_back: list[Row]) -> Iterator[Row]:
        """The training rows but those that are held out for validation, which go to `kept_back`."""
        if self.recipe.data.valid is None and documents(self.recipe.task) == "files":
            return examples.without_end(self.before_end, self.rows("train"), kept_back)
        return examples.without_every(self.every, self.rows("train"), kept_back, together(self.recipe.task))

    @cached_property
    def every(self) -> int | None:
        """Which training rows are held out for validation."""
        if self.recipe.data.valid is not None:
            return None
        return hold_out_every(_count(self.rows("train"), together(self.recipe.task)))

    def fit(self, tokenizer: Tokenizer | None = None) -> AnyTask:
        """The task with its labels and its vocabulary, learnt from the training rows unless given."""
        return fitted(self.recipe, self.learnt([]), tokenizer)

    def scored(self, task: AnyTask) -> dict[str, Sequence[Any]]:
        """The examples of the splits that are scored, not trained on."""
        given = {split: getattr(self.recipe.data, split) for split in ("valid", "test")}
        return {
            split: scored(task, self.rows(split), ", ".join(files)) for split, files in given.items() if files
        }

    def train(
        self, task: AnyTask, identity: dict[str, Any], tick: Callable[[int], None]
    ) -> tuple[Examples, Path]:
        """What is trained on, from the cache or into it; and where in the cache it is."""
        folder = self.cache / _key(self.recipe, identity)
        self.cache.mkdir(parents=True, exist_ok=True)
        with turn(self.cache / f"{folder.name}.lock"):
            found, name = layout(task).open(task, folder), ", ".join(self.recipe.data.train)
            if found is None:
                kept_back: list[Row] = []
                rows = self.learnt(kept_back)
                examples.write(task, rows, folder, name=name, kept_back=kept_back, tick=tick)
                found = layout(task).open(task, folder)
        assert found is not None
        refuse_unfit(found, name)
        return found, folder

    def held_out(self, task: AnyTask, folder: Path) -> Sequence[Any]:
        """Validation examples for a recipe that gives none."""
        files = ", ".join(self.recipe.data.train)
        if held := examples.held_out(folder):
            try:
                return scored(task, held, files)
            except DataError as error:
                raise DataError(f"{error} ({CHOOSE})") from error
        needed = f"{HELD_OUT} {wholes(self.recipe.task)} are needed to hold one out"
        raise DataError(f"{files}: no usable examples for valid; {needed}, or give data.valid")


def fitted(recipe: Recipe, rows: Iterable[Row], tokenizer: Tokenizer | None = None) -> AnyTask:
    """Only a task whose model can begin with another's encoder is ever given a vocabulary."""
    kind: Any = TASKS[recipe.task.kind]
    given = {} if tokenizer is None else {"tokenizer": tokenizer}
    task: AnyTask = kind.fit(recipe.task, rows, **given)
    return task


def hold_out_every(n: int) -> int:
    return max(HELD_OUT, -(-n // MOST_HELD_OUT))


def _count(rows: Iterable[Row], kept_together: str | None) -> int:
    """Of what is held out as a whole: rows, documents, contexts."""
    return max((number for number, _ in examples.numbered(rows, kept_together)), default=0)


def hold_out(train_rows: list[Row], *, by_end: bool = False, kept_together: str | None = None) -> list[Row]:
    """Takes the rows for validation out of the training rows."""
    held: list[Row] = []
    if by_end:
        train_rows[:] = examples.without_end(examples.before_end(train_rows), train_rows, held)
    else:
        n = hold_out_every(_count(train_rows, kept_together))
        train_rows[:] = examples.without_every(n, train_rows, held, kept_together)
    return held


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
    parts["format"] = examples.FORMAT_VERSION
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
