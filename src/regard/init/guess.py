"""Guess of `regard init` about somebody's files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from regard.fields.field import Suggestion
from regard.files.columns import Column
from regard.files.formats import file_format
from regard.files.row import Row


class Titles(NamedTuple):
    """The file that says what items are called."""

    file: str
    columns: Mapping[str, Column]
    """Columns that their names, or their places, do not tell."""
    reason: str


@dataclass(frozen=True)
class Guess:
    """Decisions of `regard init` for a recipe, with reasons."""

    task: str
    train: tuple[str, ...]
    valid: tuple[str, ...] | None
    test: tuple[str, ...] | None
    columns: dict[str, Column | None]
    n_rows: int
    """Rows of the training files."""
    sample: tuple[Row, ...]
    """Sample of the training rows, evenly spaced."""
    lengths: dict[str, tuple[int, int]]
    """Role → mean and 95th percentile, in characters."""
    reasons: tuple[str, ...]
    reason: str = ""
    """Reason why it is this task."""
    encoding: str = "utf-8"
    """Encoding of all files."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Role → kind of data, of inputs that are no texts."""
    suggestions: dict[str, Suggestion] = field(default_factory=dict)
    """Suggestions of the fields of these inputs."""
    unit: str = ""
    """Unit that `n_rows` counts, where it is not the rows of the files."""
    titles: Titles | None = None
    """File of the titles of items, if there is one."""

    @property
    def counted(self) -> str:
        """A user's word for the rows."""
        return self.unit or ("lines" if file_format(self.train[0]) == "text" else "rows")

    @property
    def amount(self) -> str:
        return f"{self.n_rows:,} {self.counted}"

    @property
    def n_characters(self) -> int:
        """Characters of all texts, about; a line end counts for each."""
        return self.n_rows * (self.lengths["text"][0] + 1)
